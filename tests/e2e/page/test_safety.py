"""Hostile text on the page."""

from __future__ import annotations

from playwright.sync_api import Page, Request, expect

from tests.e2e.page.conftest import PageOpener, ask_and_wait, keep_screenshot
from tests.performance.scripted_stack import Stack

COUNT_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
ATTRIBUTES = """elements => elements.flatMap((element) => [...element.querySelectorAll("*")])
  .flatMap((element) => [...element.attributes]).map(({ name }) => name)"""


def test_hostile_answers_do_nothing(open_page: PageOpener, stack: Stack) -> None:
    """Scripts, addresses that run one, frames, styles and pictures from elsewhere come out as text or not at all."""
    page = open_page()
    page.evaluate(COUNT_VIOLATIONS)
    requests: list[Request] = []

    def note(request: Request) -> None:
        # Playwright wants a function that it can mark.
        requests.append(request)

    page.on("request", note)
    ask_and_wait(page, "attack")
    page.reload()
    answer = page.locator(".assistant .markdown")
    expect(answer).to_contain_text("<script>window.hacked=1</script>")
    for element in answer.locator("a, p, td, code").all():
        if element.is_visible():
            element.hover(force=True)
    assert page.evaluate("window.hacked") is None
    assert answer.locator("img, script, iframe, style, svg:not(.icon), form, input").count() == 0
    links = [link.get_attribute("href") or "" for link in answer.locator("a").all()]
    assert links and all(link.startswith(("http://", "https://")) for link in links)
    assert not [name for name in answer.evaluate_all(ATTRIBUTES) if name.startswith("on") or name in ("style", "src")]
    assert all(request.url.startswith(stack.url) for request in requests)
    keep_screenshot(page, "hostile-1280")


def test_the_policy_was_not_even_needed(open_page: PageOpener) -> None:
    """The page, an answer and a dialog raise no violation of the policy, so nothing on it works by being blocked."""
    page = open_page()
    page.evaluate(COUNT_VIOLATIONS)
    ask_and_wait(page, "attack")
    ask_and_wait(page, "show the tour")
    page.locator("#settings").click()
    assert page.evaluate("window.violations") == []


def test_hostile_questions_and_titles_are_text(page: Page) -> None:
    """What the user types is shown as it is typed, in the conversation, in its title and in the list."""
    typed = '<b onclick="window.hacked=1">**x**</b>'
    ask_and_wait(page, typed)
    expect(page.locator(".user .text")).to_have_text(typed)
    expect(page.locator("#title")).to_have_text(typed)
    expect(page.locator(".session.current a")).to_have_text(typed)
    assert page.locator("b[onclick]").count() == 0


def test_the_page_can_make_no_html_by_itself(page: Page) -> None:
    """The browser refuses text as HTML and scripts from text, from whatever code they came."""
    for code in (
        "document.body.innerHTML = '<p>x</p>'",
        "document.body.insertAdjacentHTML('beforeend', '<p>x</p>')",
        "document.createElement('script').text = 'window.hacked = 1'",
    ):
        tried = f"() => {{ try {{ {code}; return 'done'; }} catch (error) {{ return error.name; }} }}"
        assert page.evaluate(tried) == "TypeError", code
