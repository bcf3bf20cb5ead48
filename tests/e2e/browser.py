"""A real browser: Debian's Chromium, headless, driven by Playwright."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

# Without these it looks for its maker's hosts at every start.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser; Chromium is installed first where it is missing."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def browser_page() -> Iterator[Page]:
    """An empty page in a browser of its own."""
    with running_browser() as browser:
        yield browser.new_page()


def _chromium() -> str:
    if shutil.which("chromium") is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"], check=True)
    found = shutil.which("chromium")
    assert found is not None
    return found
