"""One browser and one service for this folder; each test gets a page of its own, with storage of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.browser import running_browser
from tests.performance.scripted_stack import Stack, scripted_stack

SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"
# Answers that the engine gives at once.
PLACES = 3
PageOpener = Callable[..., Page]

FILTERS = """
[[rule]]
name = "colours"
words = ["mauve"]
action = "mask"
mask = "#"
"""


@pytest.fixture(scope="package")
def stack(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All tiers with SmolLM2's tokenizer, over an engine that says exact texts."""
    directory = tmp_path_factory.mktemp("page")
    filters = directory / "filters.toml"
    filters.write_text(FILTERS)
    settings: dict[str, dict[str, object]] = {
        "engine": {"max_generations": PLACES},
        "frontend": {"state_dir": directory},
        "tokenizer": {"filters_file": filters},
    }
    engine = "tests.e2e.page.engine_process"
    with scripted_stack(
        smollm2, directory, streams=PLACES, step_seconds=0.002, engine_module=engine, settings=settings
    ) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium."""
    with running_browser() as running:
        yield running


@pytest.fixture
def open_page(browser: Browser, stack: Stack) -> Iterator[PageOpener]:
    """Opens the page in a context of its own, with Playwright's options for it. Errors on the page fail the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_one(path: str = "/", **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(stack.url + path)
        expect(page.locator("#model")).to_have_value("scripted")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def page(open_page: PageOpener) -> Page:
    """The page as a desktop shows it."""
    return open_page()


def ask(page: Page, text: str) -> None:
    """Type a message and send it with Enter."""
    page.locator("#prompt").fill(text)
    page.locator("#prompt").press("Enter")


def ask_and_wait(page: Page, text: str) -> None:
    """Send a message and wait for the whole answer."""
    ask(page, text)
    wait_for_answer(page)


def wait_for_answer(page: Page) -> None:
    """Wait until the answer under way is whole and stored."""
    expect(page.locator(".assistant").last.locator(".regenerate")).to_be_enabled(timeout=30_000)


def keep_screenshot(page: Page, name: str) -> None:
    """Keep a picture of the page among the output of the tests."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
