"""The chat page and its files."""

from __future__ import annotations

import re
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from services.frontend.static_page import static_files
from tests.frontend.conftest import Frontend

STATIC = files("services.frontend").joinpath("static")
NAMED = re.compile(r"""(?:src|href|from|import)[=(\s]*["']([^"'#]+\.(?:m?js|css|svg))["']""")
KINDS = {"css": "text/css", "js": "text/javascript", "mjs": "text/javascript", "svg": "image/svg+xml"}


def test_all_that_the_page_names_is_served() -> None:
    """Each file that the page or a module names is served from here; each of our files is named by one."""
    served = static_files()
    waiting, reached = ["/"], {"/"}
    while waiting:
        path = waiting.pop()
        text = served[path].body.decode()
        # Libraries are whole in themselves.
        for name in [] if "/vendor/" in path else NAMED.findall(text):
            named = name if name.startswith("/") else _beside(path, name)
            assert named in served, f"{path} names {name}"
            if named not in reached:
                reached.add(named)
                waiting.append(named)
    assert {path for path in served if "/vendor/" not in path} == {path for path in reached if "/vendor/" not in path}


@pytest.mark.parametrize("path", ["/", "/static/js/app.js", "/static/styles/base.css", "/static/icon.svg"])
async def test_policy(frontend: Frontend, path: str) -> None:
    """Files come with their type and under a policy that allows nothing from elsewhere, no script in the page and no
    HTML from text but the sanitizer's."""
    response = await frontend.client.get(path)
    assert response.headers["content-type"].split(";")[0] == KINDS.get(path.rpartition(".")[2], "text/html")
    policy = response.headers["content-security-policy"].split("; ")
    allowed = {"script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"}
    strict = {"default-src 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify"}
    none = {"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"}
    assert set(policy) == allowed | strict | none
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


async def test_caching(frontend: Frontend) -> None:
    """A file that the browser has is not sent again until it changes; libraries, whose paths hold their versions, are
    not even asked for."""
    path = "/static/js/app.js"
    first = await frontend.client.get(path)
    again = await frontend.client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = await frontend.client.get(path, headers={"if-none-match": '"another"'})
    assert other.content == first.content
    assert first.headers["cache-control"] == "no-cache"
    library = next(path for path in static_files() if path.endswith("purify.es.mjs"))
    assert "immutable" in (await frontend.client.get(library)).headers["cache-control"]


def test_nothing_inline() -> None:
    """The page has no script and no style that its policy would forbid, and no module makes HTML of text."""
    page = STATIC.joinpath("index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", page) == []
    makes_html = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment"
    modules = [file for file in STATIC.joinpath("js").iterdir() if file.name.endswith(".js")]
    assert len(modules) > 20
    for module in modules:
        text = module.read_text()
        assert re.findall(makes_html, text) == [], module.name
        without_comments = re.sub(r"^\s*(//|/\*|\*).*$", "", text, flags=re.MULTILINE)
        # The name of SVG's elements, which is no address.
        assert set(re.findall(r"https?://[\w.]+", without_comments)) <= {"http://www.w3.org"}, module.name
        assert len(text.splitlines()) <= 200, f"{module.name} is more than one concept"


def test_the_wheel_has_all_files(wheel: Path) -> None:
    """An installed frontend has the page, its modules and the vendored libraries with their licences."""
    below = "services/frontend/static/"
    packed = {name.removeprefix(below) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(below)}
    assert packed == {"index.html", *(path.removeprefix("/static/") for path in static_files() if path != "/")}


def _beside(path: str, name: str) -> str:
    parts = path.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
