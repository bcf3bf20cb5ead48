"""The web page, where the service asks for a key."""

from __future__ import annotations

import asyncio
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.browser import running_browser
from tests.frontend.conftest import Starter

KEY, OTHER = "so-5e0c7b1f9a3d48e2", "so-a-second-key"


async def test_page(start: Starter, tmp_path: Path) -> None:
    """The page asks for a key when it is refused, tells a wrong one, and works with a right one, which is gone with
    the tab unless the user wants it remembered. Other keys have other chats."""
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n{OTHER}\n")
    locked = await start(api_keys_file=keys, state_dir=tmp_path)

    def drive() -> None:
        with running_browser() as browser:
            context = browser.new_context()
            page = context.new_page()
            page.goto(locked.url)
            dialog, key, reason = page.locator("#key-dialog"), page.locator("#key"), page.locator("#key-reason")
            expect(reason).to_have_text("This service asks for an API key.")
            expect(key).to_be_focused()
            key.fill("so-wrong")
            key.press("Enter")
            expect(reason).to_have_text("This API key is not accepted.")
            key.fill(KEY)
            key.press("Enter")
            expect(page.locator("#model")).to_have_value("scripted")
            expect(dialog).to_be_hidden()
            page.locator("#prompt").fill("one two")
            page.locator("#prompt").press("Enter")
            expect(page.locator(".assistant .text")).to_contain_text("one two")
            page.reload()
            expect(page.locator(".assistant .text")).to_contain_text("one two")
            expect(dialog).to_be_hidden()
            other_tab = context.new_page()
            other_tab.goto(locked.url)
            expect(other_tab.locator("#key-dialog")).to_be_visible()
            other_tab.locator("#key").fill(OTHER)
            other_tab.locator("#key-remember").check()
            other_tab.locator("#key").press("Enter")
            expect(other_tab.locator("#model")).to_have_value("scripted")
            expect(other_tab.locator("#sessions-note")).to_have_text("No chats yet.")
            third_tab = context.new_page()
            third_tab.goto(locked.url)
            expect(third_tab.locator("#model")).to_have_value("scripted")
            expect(third_tab.locator("#key-dialog")).to_be_hidden()

    await asyncio.to_thread(drive)
