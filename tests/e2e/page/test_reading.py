"""Reading and operating the page: scrolling, keys, themes, small screens, screen readers."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.conftest import PageOpener, ask, ask_and_wait, keep_screenshot, wait_for_answer

FROM_END = "e => Math.round(e.scrollHeight - e.scrollTop - e.clientHeight)"


def test_scrolling_yields_to_the_reader(page: Page) -> None:
    """The latest text stays in sight until the reader scrolls up; then nothing moves, and a button leads back."""
    page.set_viewport_size({"width": 900, "height": 420})
    ask_and_wait(page, "show the tour")
    ask(page, "show the tour")
    scroller, jump = page.locator("#scroller"), page.locator("#jump")
    expect(page.locator(".assistant").last.locator("h1")).to_be_visible()
    assert scroller.evaluate(FROM_END) < 40
    scroller.hover()
    page.mouse.wheel(0, -300)
    expect(jump).to_be_visible()
    top = scroller.evaluate("e => e.scrollTop")
    wait_for_answer(page)
    assert scroller.evaluate("e => e.scrollTop") == top
    keep_screenshot(page, "jump-900")
    jump.click()
    expect(jump).to_be_hidden()
    assert scroller.evaluate(FROM_END) < 40
    # Whoever scrolls back to the end follows again.
    page.mouse.wheel(0, -200)
    expect(jump).to_be_visible()
    page.mouse.wheel(0, 400)
    expect(jump).to_be_hidden()
    ask_and_wait(page, "one more")
    assert scroller.evaluate(FROM_END) < 40


def test_keys(page: Page) -> None:
    """Enter sends, Shift+Enter breaks the line, arrow up edits the last message, and the shortcuts do what the help
    says."""
    prompt = page.locator("#prompt")
    expect(prompt).to_be_focused()
    prompt.press_sequentially("one")
    prompt.press("Shift+Enter")
    prompt.press_sequentially("two")
    expect(prompt).to_have_value("one\ntwo")
    prompt.press("Enter")
    wait_for_answer(page)
    expect(page.locator(".user .text")).to_have_text("one\ntwo")
    prompt.press("ArrowUp")
    expect(page.get_by_role("textbox", name="Edit message")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+K")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(page.locator(".user")).to_have_count(0)
    expect(prompt).to_be_focused()
    prompt.blur()
    page.keyboard.press("?")
    help_dialog = page.locator("#help-dialog")
    expect(help_dialog).to_be_visible()
    expect(help_dialog.locator("dd")).to_contain_text(["Send the message", "New line", "Stop the answer"])
    keep_screenshot(page, "help-1280")
    page.keyboard.press("Escape")
    expect(help_dialog).to_be_hidden()
    page.keyboard.press("/")
    expect(prompt).to_be_focused()
    expect(prompt).to_have_value("")


def test_skip_link(page: Page) -> None:
    """Before all else that takes the focus there is a link past the list of chats, right to the message field."""
    page.locator(".brand").click()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Skip to the message field")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#prompt")).to_be_focused()
    expect(page.locator("#error-dialog")).to_be_hidden()


def test_a_composed_character_is_not_sent(page: Page) -> None:
    """Enter that ends the composition of a character, as in Japanese, does not send the message."""
    page.locator("#prompt").fill("にほ")
    page.locator("#prompt").dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(page.locator(".user")).to_have_count(0)
    expect(page.locator("#prompt")).to_have_value("にほ")


def test_dialogs_keep_and_return_the_focus(page: Page) -> None:
    """A dialog takes the focus, keeps it from the page behind, and gives it back to its button."""
    button = page.locator("#settings")
    button.press("Enter")
    dialog = page.get_by_role("dialog", name="Settings")
    expect(dialog).to_be_visible()
    for _ in range(30):
        page.keyboard.press("Tab")
        inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        assert page.evaluate(inside)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes(open_page: PageOpener, scheme: str) -> None:
    """The page follows the system's theme until another one is chosen, which lasts over a reload, and its text has
    the contrast that WCAG 2 asks for (4.5)."""
    page = open_page(color_scheme=scheme)
    ask_and_wait(page, "show the tour")
    keep_screenshot(page, f"chat-1280-{scheme}")
    assert page.evaluate(CONTRASTS) == []
    theme = page.locator("#theme")
    expect(theme).to_have_attribute("aria-label", "Theme: system")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    other = {"light": "dark", "dark": "light"}[scheme]
    while theme.get_attribute("aria-label") != f"Theme: {other}":
        theme.click()
    changed = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert changed != ground
    page.reload()
    expect(page.locator(".assistant h1")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == changed


# Elements with text whose contrast to the ground behind them is below 4.5: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("#page *, #sidebar *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const isVisible = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!hasText || !isVisible || element.matches(":disabled, option, .visually-hidden")) continue;
    const [a, b] = [luminance(rgba(getComputedStyle(element).color)), luminance(ground(element))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) poor.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


def test_narrow(open_page: PageOpener) -> None:
    """At 360 pixels nothing is wider than the screen: long code and tables scroll by themselves, the list of
    conversations lies over the page, and what is touched is large enough (24 pixels, WCAG 2.5.8)."""
    page = open_page(viewport={"width": 360, "height": 720}, has_touch=True)
    assert page.locator("#scroller").evaluate("e => e.scrollTop") == 0
    keep_screenshot(page, "empty-360")
    ask_and_wait(page, "show the tour")
    keep_screenshot(page, "chat-360")
    wide = "['html', '#scroller'].map((e) => document.querySelector(e)).map((e) => e.scrollWidth - e.clientWidth)"
    assert page.evaluate(wide) == [0, 0]
    for scrolls in (".code-block pre", ".table-frame"):
        assert page.locator(scrolls).evaluate("e => e.scrollWidth > e.clientWidth")
    small = """() => [...document.querySelectorAll("button, select")].filter((e) => e.checkVisibility())
      .map((e) => [e.id || e.className, e.getBoundingClientRect()])
      .filter(([, box]) => Math.min(box.width, box.height) < 24).map(([name]) => name)"""
    assert page.evaluate(small) == []
    sidebar = page.locator("#sidebar")
    expect(sidebar).not_to_be_visible()
    page.locator("#menu").click()
    expect(page.locator(".session.current a")).to_be_visible()
    page.wait_for_timeout(250)
    keep_screenshot(page, "sidebar-360")
    page.locator("#backdrop").click(position={"x": 340, "y": 400})
    expect(sidebar).not_to_be_visible()
    page.locator("#settings").click()
    page.wait_for_timeout(250)
    assert page.locator("#settings-dialog").evaluate("e => e.scrollWidth - e.clientWidth") == 0
    keep_screenshot(page, "settings-360")


def test_reduced_motion(open_page: PageOpener) -> None:
    """Who asks for reduced motion sees nothing animated, and the same text."""
    page = open_page(reduced_motion="reduce")
    ask(page, "count slowly")
    expect(page.locator(".streaming")).to_contain_text("1 2")
    assert page.evaluate("document.getAnimations().length") == 0
    page.locator("#settings").click()
    assert page.evaluate("document.getAnimations().length") == 0


def test_screen_readers(page: Page) -> None:
    """The conversation is a log that is not read word by word: begin and whole text of an answer are announced. All
    that can be operated has a name."""
    log = page.get_by_role("log", name="Conversation")
    expect(log).to_have_attribute("aria-live", "off")
    announcer = page.locator("#announcer")
    expect(announcer).to_have_attribute("role", "status")
    ask(page, "count slowly")
    expect(announcer).to_have_text("Answering…")
    expect(page.get_by_role("article", name="Answer")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".assistant .text")).to_contain_text("1 2 3")
    expect(announcer).to_have_text("Answering…")
    page.get_by_role("button", name="Stop").click()
    expect(announcer).to_have_text("Stopped.")
    ask_and_wait(page, "hello")
    expect(announcer).to_contain_text("You said: hello")
    expect(page.get_by_role("article", name="Answer").last).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("meter", name="Context")).to_have_attribute("aria-valuemax", "16384")
    nameless = """() => [...document.querySelectorAll("button, input, select, textarea, a, dialog, [role=group]")]
      .filter((e) => !e.hidden && !(e.getAttribute("aria-label") || e.title || e.textContent.trim() || e.labels?.length
        || e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML)"""
    assert page.evaluate(nameless) == []
