"""The project's own source files, as the architecture tests read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def sources(*folders: str) -> Iterator[Path]:
    """The Python files below the given folders of the repository."""
    for folder in folders:
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def parse(path: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    """The file's path inside the repository, for messages."""
    return str(path.relative_to(REPOSITORY))


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """The full name of every module that a file imports, wherever in the file it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
