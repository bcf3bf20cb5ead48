"""Notices at answers: what was left out of the prompt, filtered out of the answer, or is wrong with its format."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.page.conftest import ask_and_wait, keep_screenshot


def test_a_trimmed_history_is_told(page: Page) -> None:
    """When the oldest messages no longer fit the context, the answer says how many are left out, after a reload too."""
    for word in ("red", "green"):
        ask_and_wait(page, f"{word} " * 9000)
    notice = page.locator(".notice.trimmed")
    told = "2 earlier messages"
    expect(notice).to_contain_text(told)
    keep_screenshot(page, "trimmed-1280")
    page.reload()
    expect(notice).to_contain_text(told)


def test_a_summary_is_told_and_shown(page: Page) -> None:
    """With the policy that summarizes, the answer says that the model was told a summary, and shows it."""
    page.locator("#settings").click()
    page.locator("#context-policy").select_option("summarize")
    page.keyboard.press("Escape")
    for word in ("red", "green"):
        ask_and_wait(page, f"{word} " * 9000)
    notice = page.locator(".notice.trimmed")
    expect(notice).to_contain_text("the model was told a summary")
    notice.get_by_text("Show summary").click()
    expect(notice.locator("p")).to_contain_text("You said:")
    keep_screenshot(page, "summary-1280")


def test_filtered_text_is_told(page: Page) -> None:
    """An answer in which a filter masked something says which rule did it."""
    ask_and_wait(page, "I like mauve and mauve")
    expect(page.locator(".assistant .text")).to_have_text("You said: I like ##### and #####")
    expect(page.locator(".notice.filtered")).to_have_text("Filtered – colours: masked (2 times).")


def test_faulty_formats_are_told(page: Page) -> None:
    """With the format check switched on, an answer that is no JSON says so."""
    page.locator("#settings").click()
    page.get_by_label("Answers must be JSON").check()
    page.keyboard.press("Escape")
    ask_and_wait(page, "hello")
    expect(page.locator(".notice.fault").first).to_contain_text("Faulty JSON at character 0")
    keep_screenshot(page, "fault-1280")
