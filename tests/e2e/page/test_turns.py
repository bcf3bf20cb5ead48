"""Turns of a conversation: stopping, other versions, branches, going on."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.page.answers import NUMBERS
from tests.e2e.page.conftest import ask, ask_and_wait, keep_screenshot, wait_for_answer


def shown_text(page: Page) -> str:
    """Text of the last answer."""
    return page.locator(".assistant .text").last.inner_text()


def test_figures_live_and_kept(page: Page) -> None:
    """Time to first token, tokens a second, token counts and the context's use show while the answer comes, and the
    same kinds of figures after a reload."""
    ask(page, "count slowly")
    stats, meter = page.locator(".stats"), page.locator("#context")
    expect(stats).to_contain_text(re.compile(r"\d+ m?s to first token · \d+\.\d tokens/s · \d+ prompt tokens"))
    counted = re.compile(r"\d+ of 16,384 tokens of context")
    expect(meter).to_contain_text(counted)
    first = meter.get_attribute("aria-valuenow")
    expect(meter).not_to_have_attribute("aria-valuenow", first or "")
    page.locator("#stop").click()
    wait_for_answer(page)
    page.reload()
    expect(stats).to_contain_text(re.compile(r"to first token · \d+\.\d tokens/s · \d+ prompt.* · \d+ answer tokens"))
    expect(meter).to_contain_text(counted)


def test_stop_and_continue(page: Page) -> None:
    """A stopped answer stays, marked; going on completes it as another version, exactly where it stopped."""
    ask(page, "count slowly")
    expect(page.locator(".assistant .text")).to_contain_text("1 2 3")
    page.locator("#prompt").press("Escape")
    wait_for_answer(page)
    cut = shown_text(page)
    assert cut != NUMBERS and NUMBERS.startswith(cut)
    expect(page.locator(".assistant .status")).to_have_text("Stopped before its end.")
    keep_screenshot(page, "stopped-1280")
    page.locator(".continue").click()
    wait_for_answer(page)
    assert shown_text(page) == NUMBERS
    expect(page.locator(".variant-count")).to_have_text("2/2")
    page.locator(".variant-before").click()
    expect(page.locator(".variant-count")).to_have_text("1/2")
    assert shown_text(page) == cut


def test_an_answer_cut_at_most_tokens_goes_on(page: Page) -> None:
    """An answer that ends at the most tokens allowed says so and can be continued."""
    page.locator("#settings").click()
    page.locator("#parameter-max_tokens").fill("9")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    ask_and_wait(page, "count to forty")
    expect(page.locator(".assistant .status")).to_have_text("Cut at the most tokens allowed.")
    before = shown_text(page)
    page.locator(".continue").click()
    expect(page.locator(".variant-count")).to_have_text("2/2")
    wait_for_answer(page)
    assert len(before) < len(shown_text(page)) and NUMBERS.startswith(shown_text(page))


def test_versions_of_an_answer(page: Page) -> None:
    """Regenerating adds a version; the arrows go through all, the end buttons stop there, a reload keeps the choice."""
    ask_and_wait(page, "say which")
    texts = [shown_text(page)]
    for number in (2, 3):
        page.locator(".regenerate").click()
        expect(page.locator(".variant-count")).to_have_text(f"{number}/{number}")
        wait_for_answer(page)
        texts.append(shown_text(page))
    assert len(set(texts)) == 3
    expect(page.locator(".variant-after")).to_be_disabled()
    page.locator(".variant-before").click()
    expect(page.locator(".variant-count")).to_have_text("2/3")
    assert shown_text(page) == texts[1]
    # The button that took its place has the focus, so that the arrows can be pressed on.
    expect(page.locator(".variant-before")).to_be_focused()
    page.reload()
    expect(page.locator(".variant-count")).to_have_text("2/3")
    assert shown_text(page) == texts[1]
    page.locator(".variant-before").click()
    expect(page.locator(".variant-before")).to_be_disabled()
    assert shown_text(page) == texts[0]


def test_edit_branches(page: Page) -> None:
    """An edited message begins another branch; the first one is still there with all that followed."""
    ask_and_wait(page, "one")
    ask_and_wait(page, "two")
    first = page.locator(".user").first
    first.hover()
    first.get_by_role("button", name="Edit").click()
    field = page.get_by_role("textbox", name="Edit message")
    expect(field).to_be_focused()
    field.fill("uno")
    field.press("Enter")
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text(["uno"])
    expect(page.locator(".assistant .text")).to_have_text(["You said: uno"])
    expect(first.locator(".variant-count")).to_have_text("2/2")
    keep_screenshot(page, "branches-1280")
    first.locator(".variant-before").click()
    expect(page.locator(".user .text")).to_have_text(["one", "two"])
    expect(page.locator(".assistant .text")).to_have_text(["You said: one", "You said: two"])


def test_two_conversations_at_once(page: Page) -> None:
    """An answer goes on while another conversation is shown, and is there, still growing, on return."""
    ask(page, "count slowly")
    expect(page.locator(".assistant .text")).to_contain_text("1 2 3")
    expect(page.locator("#title")).to_have_text("count slowly")
    address = page.url
    page.locator("#new-chat").click()
    expect(page.locator(".assistant")).to_have_count(0)
    ask(page, "hello")
    expect(page.locator(".assistant .text")).to_have_text("You said: hello")
    page.goto(address)
    answer = page.locator(".assistant .text")
    expect(answer).to_contain_text("1 2 3 4 5 6")
    wait_for_answer(page)
    expect(answer).to_have_text(NUMBERS)
