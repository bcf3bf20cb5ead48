"""Markdown on the page."""

from __future__ import annotations

import random

from playwright.sync_api import Page, expect

from tests.e2e.page.answers import HOSTILE, MARKDOWN, long_answer
from tests.e2e.page.conftest import ask_and_wait, keep_screenshot

TRICKY = """A paragraph
that becomes a heading
---
- a list
* * *
***bold** and italic*
1. one

   ```js
   let open = `fence
   ```
2. two

| a | b |
|---|---
| 1 | 2
text after

    indented code

[x]: http://example.org "title"
> quote
lazy
[x] and **unclosed
```
never closed
"""

# With a string over several lines, which is no string for who sees its last line alone.
LONG_CODE = "Code:\n\n```python\n" + 'x = """one\ntwo\n"""\nprint(x)  # said\n' * 80 + "```\n\nThat was it.\n"

SHOW_IN_PIECES = """async ([text, cuts]) => {
  const { MarkdownView } = await import("/static/js/markdown_view.js");
  const whole = document.createElement("div"), grown = document.createElement("div");
  new MarkdownView(whole, () => {}).show(text);
  const view = new MarkdownView(grown, () => {});
  for (const cut of cuts) {
    view.grow(text.slice(0, cut));
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 3));
  }
  view.show(text);
  return [grown.innerHTML, whole.innerHTML];
}"""


def test_all_kinds_of_blocks(page: Page) -> None:
    """Headings, lists, quotations, coloured code and tables are shown; pictures are links, and links open elsewhere."""
    ask_and_wait(page, "show the tour")
    answer = page.locator(".assistant .markdown")
    expect(answer.locator("h1")).to_have_text("A short tour")
    expect(answer.locator("ol > li")).to_have_count(2)
    expect(answer.locator("ol ul > li")).to_have_text(["one", "two"])
    expect(answer.locator("blockquote")).to_contain_text("A quotation")
    expect(answer.locator(".code-language")).to_have_text("python")
    expect(answer.locator(".hljs-keyword")).to_have_text(["def", "return"])
    expect(answer.locator("td.align-right")).to_have_text(["1991", "2015"])
    expect(answer.locator("img")).to_have_count(0)
    addresses = ["https://example.org/page", "https://example.org/cat.png", "https://example.org/manual"]
    links = answer.locator("a").all()
    assert [link.get_attribute("href") for link in links] == addresses
    assert all(link.get_attribute("rel") == "noopener noreferrer" for link in links)
    keep_screenshot(page, "markdown-1280-light")


def test_streamed_and_stored_look_the_same(page: Page) -> None:
    """An answer that grew block by block has the same elements as the stored one after a reload."""
    ask_and_wait(page, "show the tour")
    answer = page.locator(".assistant .markdown")
    grown = answer.inner_html()
    page.reload()
    expect(answer.locator("table")).to_be_visible()
    assert answer.inner_html() == grown


def test_any_splits_give_the_whole(page: Page) -> None:
    """However a text is cut into pieces, the elements at the end are those of the text shown at once."""
    chance = random.Random(5)
    for text in (TRICKY, MARKDOWN, HOSTILE, TRICKY.replace("\n", "\r\n"), long_answer(3), LONG_CODE):
        for pieces in (10, 40):
            cuts = sorted(chance.sample(range(1, len(text)), min(pieces, len(text) - 1)))
            grown, whole = page.evaluate(SHOW_IN_PIECES, [text, cuts])
            assert grown == whole, cuts


def test_code_is_copied_as_it_is(page: Page) -> None:
    """The button of a code block copies its text, and the one below copies the whole answer as markdown."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask_and_wait(page, "show the tour")
    page.locator(".copy-code").click()
    expect(page.locator(".copy-code")).to_have_class("copy-code copied")
    code = MARKDOWN.split("```python\n")[1].split("```")[0]
    assert page.evaluate("navigator.clipboard.readText()") == code
    page.locator(".assistant").get_by_role("button", name="Copy", exact=True).last.click()
    expect(page.locator("#announcer")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == MARKDOWN
