"""What the page does when something goes wrong."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
from playwright.sync_api import Page, Request, Route, expect

from services.chassis.errors import InternalError, RateLimited
from services.frontend.errors import error_headers, error_object, http_of
from tests.e2e.page.answers import NUMBERS
from tests.e2e.page.conftest import PLACES, ask, ask_and_wait, keep_screenshot, wait_for_answer
from tests.performance.scripted_stack import MODEL, Stack


@contextmanager
def full_engine(stack: Stack) -> Iterator[None]:
    """An engine whose places are all taken."""
    asked = {"role": "user", "content": "count slowly"}
    body = {"model": MODEL, "messages": [asked], "stream": True, "ignore_eos": True}
    url = f"{stack.url}/v1/chat/completions"
    with ExitStack() as running, httpx.Client(timeout=30) as client:
        responses = [running.enter_context(client.stream("POST", url, json=body)) for _ in range(PLACES)]
        assert [response.status_code for response in responses] == [200] * PLACES
        yield


def test_a_busy_service_is_asked_again_after_a_countdown(page: Page, stack: Stack) -> None:
    """While all places are taken, the page counts down to each next try, and answers as soon as there is a place."""
    with full_engine(stack):
        ask(page, "hello")
        expect(page.locator(".countdown")).to_have_text(re.compile(r"Trying again in \d s\."))
        expect(page.locator(".busy")).to_contain_text("HTTP 503")
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text(["hello"])
    expect(page.locator(".assistant .text")).to_have_text(["You said: hello"])
    expect(page.locator(".error")).to_have_count(0)


def test_too_many_requests(page: Page) -> None:
    """429 counts down the seconds of Retry-After; trying now does not wait for them, and cancelling gives the error."""
    error = RateLimited("too many requests; try again later", retry_after=30)
    headers = {name.decode(): value.decode() for name, value in error_headers(error)} | {"x-request-id": "req-of-test"}
    status, body = http_of(error).status, error_object(error)
    refusals = 2

    def refuse(route: Route) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals < 0:
            route.continue_()
        else:
            route.fulfill(status=status, headers=headers, body=body, content_type="application/json")

    page.route("**/v1/chat/completions", refuse)
    ask(page, "hello")
    expect(page.locator(".countdown")).to_have_text(re.compile(r"Trying again in (30|29) s\."))
    expect(page.locator(".countdown")).to_have_text("Trying again in 28 s.")
    expect(page.locator(".request-id")).to_have_text("req-of-test")
    keep_screenshot(page, "countdown-1280")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".countdown")).to_have_text(re.compile(r"Trying again in (30|29) s\."))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".error")).to_contain_text("too many requests; try again later")
    page.get_by_role("button", name="Retry").click()
    wait_for_answer(page)
    expect(page.locator(".assistant .text")).to_have_text(["You said: hello"])


def test_an_error_is_told_in_its_place(page: Page) -> None:
    """A refusal shows its text, status and request id where the answer would be, and the message can be changed."""
    page.evaluate("localStorage.setItem('parameters', JSON.stringify({ max_tokens: 99999999 }))")
    page.reload()
    expect(page.locator("#model")).to_have_value("scripted")
    with page.expect_response("**/v1/chat/completions") as response:
        ask(page, "hello")
    error = page.get_by_role("alert").and_(page.locator(".error"))
    expect(error).to_contain_text("max_tokens")
    expect(error).to_contain_text("HTTP 400")
    expect(error.locator(".request-id")).to_have_text(response.value.headers["x-request-id"])
    keep_screenshot(page, "error-1280")
    page.locator("#settings").click()
    page.locator("#reset-parameters").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit message").click()
    expect(page.locator("#prompt")).to_have_value("hello")
    page.locator("#prompt").press("Enter")
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text(["hello"])
    expect(error).to_have_count(0)


def test_an_internal_error_can_be_tried_again(page: Page) -> None:
    """After an error that is not about being busy, Retry sends the same message once more, and it is there once."""
    error = InternalError()

    def fail(route: Route) -> None:
        route.fulfill(status=500, body=error_object(error), content_type="application/json")

    page.route("**/v1/chat/completions", fail, times=1)
    ask(page, "hello")
    expect(page.locator(".error")).to_contain_text("Internal error", ignore_case=True)
    page.get_by_role("button", name="Retry").click()
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text(["hello"])
    expect(page.locator(".assistant .text")).to_have_text(["You said: hello"])


def test_a_lost_network_loses_nothing(page: Page) -> None:
    """While the network is away the page says so; when it is back the answer goes on after the last event that came,
    and is whole and stored once."""
    resumed: list[Request] = []
    page.on("request", lambda request: resumed.append(request) if "/v1/streams/" in request.url else None)
    ask(page, "count slowly")
    expect(page.locator(".assistant .text")).to_contain_text("1 2 3")
    page.context.set_offline(True)
    expect(page.locator(".assistant .status")).to_have_text("Connection lost. Reconnecting…")
    expect(page.locator("#model-state")).to_have_text("unreachable")
    keep_screenshot(page, "offline-1280")
    lost_at = page.locator(".assistant .text").inner_text()
    page.wait_for_timeout(400)
    page.context.set_offline(False)
    wait_for_answer(page)
    expect(page.locator(".assistant .text")).to_have_text([NUMBERS])
    assert NUMBERS.startswith(lost_at) and lost_at != NUMBERS
    assert all(int(request.headers["last-event-id"]) > 1 for request in resumed) and resumed
    expect(page.locator("#model-state")).to_have_text("ready")
    page.reload()
    expect(page.locator(".assistant .text")).to_have_text([NUMBERS])


def test_a_reload_in_the_middle_picks_the_answer_up(page: Page) -> None:
    """An answer under way is still growing after the page is loaded again, and can be stopped."""
    ask(page, "count slowly")
    answer = page.locator(".assistant .text")
    expect(answer).to_contain_text("1 2 3")
    page.reload()
    expect(answer).to_contain_text("1 2 3")
    expect(page.locator("#stop")).to_be_visible()
    before = answer.inner_text()
    expect(answer).not_to_have_text(before)
    page.locator("#stop").click()
    wait_for_answer(page)
    expect(page.locator(".assistant .status")).to_have_text("Stopped before its end.")


def test_a_message_sent_without_network_is_not_lost(page: Page) -> None:
    """A message that cannot be sent stays with the error, and goes out with Retry when the network is back."""
    ask_and_wait(page, "one")
    page.context.set_offline(True)
    ask(page, "two")
    expect(page.locator(".error")).to_contain_text("cannot be reached")
    page.context.set_offline(False)
    page.get_by_role("button", name="Retry").click()
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text(["one", "two"])
    expect(page.locator(".assistant .text")).to_have_text(["You said: one", "You said: two"])


def test_another_turn_on_the_session(page: Page, stack: Stack) -> None:
    """While another client's turn runs in the session, a message is refused in its place, and Retry sends it later."""
    ask_and_wait(page, "one")
    session = page.url.rpartition("/")[2]
    body = {"model": MODEL, "session_id": session, "messages": [{"role": "user", "content": "count slowly"}]}
    other = threading.Thread(
        target=lambda: httpx.post(f"{stack.url}/v1/chat/completions", json={**body, "max_tokens": 50}, timeout=30)
    )
    other.start()
    try:
        page.wait_for_timeout(300)
        ask(page, "two")
        expect(page.locator(".error")).to_contain_text("HTTP 409")
        assert json.loads(httpx.get(f"{stack.url}/v1/sessions/{session}").text)["id"] == session
    finally:
        other.join()
    page.get_by_role("button", name="Retry").click()
    wait_for_answer(page)
    expect(page.locator(".assistant .text").last).to_have_text("You said: two")
