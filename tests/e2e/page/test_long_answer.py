"""An answer of ten thousand tokens."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.page.conftest import PageOpener, ask, keep_screenshot, wait_for_answer

WATCH_TASKS = """() => {
  window.tasks_ms = [0];
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.tasks_ms.push(entry.duration)))
    .observe({ type: "longtask" });
}"""
# The machine has few cores and the tiers take them all meanwhile, so a task takes some times what it takes alone.
LONGEST_MS = 300
TRIES = 3


def test_ten_thousand_tokens_stay_smooth(open_page: PageOpener) -> None:
    """While an answer of ten thousand tokens comes as fast as it can, the page takes input and never works for long
    without a pause to draw, at the answer's end as at its begin; settled blocks are not made again."""
    tries: list[float] = []
    while not tries or (min(tries) >= LONGEST_MS and len(tries) < TRIES):
        tries.append(longest_task_ms(open_page))
    assert min(tries) < LONGEST_MS, tries


def longest_task_ms(open_page: PageOpener) -> float:
    """Have the long answer given in a page of its own, and return the longest time that the page was at work."""
    page = open_page()
    page.evaluate(WATCH_TASKS)
    ask(page, "say a lot")
    heading = page.locator(".assistant h2").first
    expect(heading).to_have_text("Section 0")
    heading.evaluate("e => { e.mark = 'the first one'; }")
    page.locator("#prompt").press_sequentially("typed meanwhile")
    expect(page.locator("#prompt")).to_have_value("typed meanwhile")
    expect(page.locator(".assistant .text")).to_contain_text("This is the end.", timeout=60_000)
    wait_for_answer(page)
    assert heading.evaluate("e => e.mark") == "the first one"
    expect(page.locator(".assistant h2")).to_have_count(104)
    counted = re.search(r"([\d,]+) answer tokens", page.locator(".stats").inner_text())
    assert counted is not None and int(counted[1].replace(",", "")) > 10_000
    keep_screenshot(page, "long-1280")
    longest: float = page.evaluate("Math.max(...window.tasks_ms)")
    page.close()
    return longest
