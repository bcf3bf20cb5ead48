"""The list of conversations."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.page.conftest import PageOpener, ask_and_wait, keep_screenshot


def say(page: Page, *texts: str) -> None:
    """Begin a conversation with each of these messages."""
    for text in texts:
        page.locator("#new-chat").click()
        ask_and_wait(page, text)
        expect(page.locator(".session.current a")).to_have_text(text)


def test_listed_searched_and_opened(page: Page) -> None:
    """Conversations are listed newest first, found by a part of their text, and opened by a click or their address."""
    say(page, "about whales", "about ships")
    expect(page.locator(".session a").first).to_have_text("about ships")
    page.locator("#search").fill("said: about wha")
    titles = page.locator(".session a")
    expect(titles.first).to_have_text("about whales")
    expect(titles.get_by_text("about ships")).to_have_count(0)
    titles.first.click()
    expect(page.locator(".user .text")).to_have_text("about whales")
    expect(page).to_have_title("about whales – Stream-Omni")
    page.locator("#search").press("Escape")
    expect(titles.get_by_text("about ships").first).to_be_visible()
    page.reload()
    expect(page.locator(".user .text")).to_have_text("about whales")
    page.locator("#search").fill("nobody said this")
    expect(page.locator("#sessions-note")).to_have_text("No chat matches.")


def test_rename(page: Page) -> None:
    """A title is edited in place: Enter keeps it, Escape does not."""
    say(page, "a dull title")
    item = page.locator(".session.current")
    for key, shown in (("Escape", "a dull title"), ("Enter", "Sparkling")):
        item.hover()
        item.locator(".rename").click()
        field = page.get_by_role("textbox", name="Title")
        field.fill("Sparkling")
        field.press(key)
        expect(item.locator("a")).to_have_text(shown)
        expect(item.locator("a")).to_be_focused()
    expect(page.locator("#title")).to_have_text("Sparkling")
    page.reload()
    expect(item.locator("a")).to_have_text("Sparkling")


def test_delete(page: Page) -> None:
    """Deleting asks first; the conversation is then gone from the list and from the page."""
    say(page, "a short life")
    item = page.locator(".session.current")
    address = page.url
    item.hover()
    item.locator(".delete").click()
    dialog = page.locator("#confirm-dialog")
    expect(dialog).to_contain_text("“a short life” and all its messages will be gone.")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    keep_screenshot(page, "confirm-1280")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator(".user")).to_have_count(1)
    item.hover()
    item.locator(".delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".user")).to_have_count(0)
    expect(page.locator(".session a").get_by_text("a short life")).to_have_count(0)
    # Within the page, an address is only a change of its hash.
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#error-dialog")).to_be_visible()


def test_export_and_import(page: Page, tmp_path: Path) -> None:
    """An exported conversation is a JSON file that brings it back under an address of its own."""
    say(page, "keep me")
    address, item = page.url, page.locator(".session.current")
    item.hover()
    with page.expect_download() as download:
        item.locator(".export").click()
    assert download.value.suggested_filename == "keep-me.json"
    file = tmp_path / "keep-me.json"
    download.value.save_as(file)
    assert "You said: keep me" in json.dumps(json.loads(file.read_text()))
    with page.expect_file_chooser() as chooser:
        page.locator("#import").click()
    chooser.value.set_files(file)
    expect(page).not_to_have_url(address)
    expect(page.locator(".assistant .text")).to_have_text("You said: keep me")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with page.expect_file_chooser() as chooser:
        page.locator("#import").click()
    chooser.value.set_files(broken)
    expect(page.locator("#error-text")).to_contain_text("broken.json is no JSON")


def test_tabs_share_conversations(page: Page, open_page: PageOpener) -> None:
    """Another browser finds the conversation by its address: the server keeps it."""
    say(page, "shared words")
    other = open_page(page.url.removeprefix(page.url.split("/#")[0]))
    expect(other.locator(".assistant .text")).to_have_text("You said: shared words")
