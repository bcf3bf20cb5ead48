"""The chat page."""

from __future__ import annotations

import re

from tests.frontend.conftest import Frontend


async def test_the_page_loads_only_its_own_files(frontend: Frontend) -> None:
    """The page and all that it names are served from here, under a policy that allows nothing else."""
    page = await frontend.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(named) == 3
    for path, kind in zip(sorted(named), ("text/css", "text/javascript", "image/svg+xml"), strict=True):
        file = await frontend.client.get(path)
        assert file.status_code == 200
        assert file.headers["content-type"].startswith(kind)
        assert file.headers["content-security-policy"].startswith("default-src 'self';")
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    assert page.headers["x-content-type-options"] == "nosniff"


async def test_nothing_inline(frontend: Frontend) -> None:
    """The page has no script and no style that its policy would forbid, and no text becomes HTML."""
    page = (await frontend.client.get("/")).text
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", page) == []
    script = (await frontend.client.get("/static/chat.js")).text
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script) == []
