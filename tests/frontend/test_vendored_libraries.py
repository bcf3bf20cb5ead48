"""Libraries of the page that are kept in the repository."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "services" / "frontend" / "static" / "vendor"
LIBRARIES = json.loads((VENDOR / "manifest.json").read_text())["libraries"]


def test_files_are_those_of_their_packages() -> None:
    """Each file is, to the byte, the one of the package that the manifest names; there are no others."""
    listed = {file["path"]: file["sha256"] for library in LIBRARIES for file in library["files"]}
    present = {
        str(file.relative_to(VENDOR)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }
    assert present == listed


def test_each_comes_with_version_and_licence() -> None:
    """Folders hold the version, code holds it too, and each library's licence lies beside it."""
    assert len(LIBRARIES) == 3
    for library in LIBRARIES:
        folders = {Path(file["path"]).parent.name for file in library["files"]}
        (folder,) = folders
        assert folder.endswith(f"-{library['version']}")
        (code,) = [file["path"] for file in library["files"] if not file["path"].endswith("LICENSE")]
        assert library["version"] in (VENDOR / code).read_text()[:400]
        assert len((VENDOR / folder / "LICENSE").read_text()) > 500
        assert library["licence"] and library["keeper"] and library["integrity"].startswith("sha512-")
