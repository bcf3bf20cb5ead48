"""A browser that shows the page of a frontend in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from playwright.sync_api import Page

from tests.e2e.browser import browser_page
from tests.frontend.conftest import Frontend


async def in_browser(frontend: Frontend, drive: Callable[[Page], None]) -> None:
    """Open the page, and drive it in a thread of its own beside the frontend."""

    def run() -> None:
        with browser_page() as page:
            page.goto(frontend.url)
            drive(page)

    await asyncio.to_thread(run)
