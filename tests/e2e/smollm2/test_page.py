"""The web page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import browser_page
from tests.e2e.service import Service, wait_until


@pytest.fixture
def page(service: Service) -> Iterator[Page]:
    """The page with its model list loaded."""
    with browser_page() as opened:
        opened.goto(service.url)
        expect(opened.locator("#model")).to_be_enabled()
        yield opened


def ask(page: Page, text: str) -> None:
    """Type a message and send it with Enter."""
    page.locator("#prompt").fill(text)
    page.locator("#prompt").press("Enter")


def test_chat_streams_into_the_page(page: Page, service: Service, tmp_path: Path) -> None:
    """An answer grows on the page, and a second question is answered with the first in mind."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    ask(page, "What is the capital of France?")
    answer = page.locator(".assistant")
    expect(answer).to_contain_text("Paris", timeout=30_000)
    expect(page.locator("#send")).to_be_visible(timeout=30_000)
    ask(page, "And of Germany?")
    expect(answer).to_have_count(2)
    expect(page.locator("#send")).to_be_visible(timeout=60_000)
    page.screenshot(path=tmp_path / "chat.png")
    assert all(url.startswith(service.url) for url in requests)


def test_stop_button_frees_the_engine(page: Page, service: Service) -> None:
    """The stop button ends an answer in mid-stream: the text stays, the engine is idle within a second."""
    ask(page, "Count from one to five hundred in words.")
    answer = page.locator(".assistant")
    expect(answer).to_contain_text(re.compile(r"\w+ \w+"), timeout=30_000)
    wait_until(lambda: not service.is_idle(), 5, "vLLM does not run")
    page.locator("#stop").click()
    wait_until(service.is_idle, 1, "vLLM is not idle")
    expect(answer).to_contain_text("stopped")
    expect(page.locator("#send")).to_be_visible()
