"""The web page in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.e2e.browser import browser_page
from tests.e2e.service import Service, wait_until

# What the model says is its own affair.
SOME_WORDS = re.compile(r"\w+\W+\w+")


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


def stop(page: Page) -> None:
    """End the answer under way, if it has not ended by itself."""
    if page.locator("#stop").is_visible():
        page.locator("#stop").click()
    expect(page.locator("#send")).to_be_visible()


def test_chat_streams_into_the_page(page: Page, service: Service, tmp_path: Path) -> None:
    """An answer grows on the page, the next question is sent with the first exchange, and nothing goes elsewhere."""
    requests: list[Request] = []

    def note(request: Request) -> None:
        # Playwright wants a function that it can mark.
        requests.append(request)

    page.on("request", note)
    ask(page, "Count from one to five hundred in words.")
    answers = page.locator(".assistant")
    expect(answers).to_contain_text(SOME_WORDS, timeout=30_000)
    first = answers.inner_text()
    expect(answers).not_to_have_text(first)
    stop(page)
    ask(page, "And backwards?")
    expect(answers).to_have_count(2)
    expect(answers.nth(1)).to_contain_text(SOME_WORDS, timeout=30_000)
    stop(page)
    page.screenshot(path=tmp_path / "chat.png")
    sent = [json.loads(request.post_data or "") for request in requests if request.method == "POST"]
    assert [len(body["messages"]) for body in sent] == [1, 3]
    assert sent[1]["messages"][1]["content"].startswith(first)
    assert all(request.url.startswith(service.url) for request in requests)


def test_stop_button_frees_the_engine(page: Page, service: Service) -> None:
    """The stop button ends an answer in mid-stream: the text stays, the engine is idle within a second."""
    ask(page, "Count from one to five hundred in words.")
    answer = page.locator(".assistant")
    expect(answer).to_contain_text(SOME_WORDS, timeout=30_000)
    wait_until(lambda: not service.is_idle(), 5, "vLLM does not run")
    page.locator("#stop").click()
    wait_until(service.is_idle, 1, "vLLM is not idle")
    expect(answer).to_contain_text("stopped")
    expect(page.locator("#send")).to_be_visible()
