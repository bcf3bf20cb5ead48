"""The web page on the real model. What it does with exact answers is tested in `tests/e2e/page`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from tests.e2e.browser import browser_page
from tests.e2e.page.conftest import ask, keep_screenshot
from tests.e2e.service import Service, wait_until

# What the model says is its own affair.
SOME_WORDS = re.compile(r"\w+\W+\w+")


@pytest.fixture
def page(service: Service) -> Iterator[Page]:
    """The page with its model list loaded."""
    with browser_page() as opened:
        opened.goto(service.url)
        expect(opened.locator("#model")).to_have_value(service.model)
        yield opened


def stop(page: Page) -> None:
    """End the answer under way, if it has not ended by itself, and wait until it is stored."""
    if page.locator("#stop").is_visible():
        page.locator("#stop").click()
    expect(page.locator(".regenerate").last).to_be_enabled()


def test_chat_streams_into_the_page(page: Page, service: Service) -> None:
    """An answer grows on the page, the next question is sent alone and answered in the same session, the session is
    there after a reload, and nothing goes elsewhere."""
    requests: list[Request] = []

    def note(request: Request) -> None:
        # Playwright wants a function that it can mark.
        requests.append(request)

    page.on("request", note)
    ask(page, "Count from one to five hundred in words.")
    answers = page.locator(".assistant .text")
    expect(answers).to_contain_text(SOME_WORDS, timeout=30_000)
    first = answers.inner_text()
    expect(answers).not_to_have_text(first)
    stop(page)
    ask(page, "And backwards?")
    expect(answers).to_have_count(2)
    expect(answers.nth(1)).to_contain_text(SOME_WORDS, timeout=30_000)
    expect(page.locator(".stats").last).to_contain_text("tokens/s")
    stop(page)
    keep_screenshot(page, "smollm2-1280")
    turns = [request for request in requests if request.url.endswith("/v1/chat/completions")]
    sent = [json.loads(request.post_data or "") for request in turns]
    assert [len(body["messages"]) for body in sent] == [1, 1]
    assert len({body["session_id"] for body in sent}) == 1
    page.reload()
    expect(answers).to_have_count(2)
    expect(answers.first).to_contain_text(first.split("\n")[0])
    assert all(request.url.startswith(service.url) for request in requests)


def test_stop_button_frees_the_engine(page: Page, service: Service) -> None:
    """The stop button ends an answer in mid-stream: the text stays, the engine is idle within a second."""
    ask(page, "Count from one to five hundred in words.")
    answer = page.locator(".assistant")
    expect(answer).to_contain_text(SOME_WORDS, timeout=30_000)
    wait_until(lambda: not service.is_idle(), 5, "vLLM does not run")
    page.locator("#stop").click()
    wait_until(service.is_idle, 1, "vLLM is not idle")
    expect(answer.locator(".status")).to_have_text("Stopped before its end.")
    expect(page.locator("#send")).to_be_visible()
