"""How the source is cut: small files, and names that say what a thing is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source_tree import parse, relative, sources

MAX_LINES = 300
EMPTY_NAMES = {"common", "data", "handler", "helper", "helpers", "manager", "util", "utils"}


def words(name: str) -> set[str]:
    """The lower-case words of a snake_case or CamelCase name."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("link_client", {"link", "client"}), ("HTTPDataHandler", {"http", "data", "handler"}), ("Database", {"database"})],
)
def test_names_are_split_into_words(name: str, expected: set[str]) -> None:
    """The rule looks at whole words, in both spellings."""
    assert words(name) == expected


def test_files_are_short() -> None:
    """A file holds one concept: none has more than 300 lines."""
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources("services", "tests")
    }
    assert lengths
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_no_module_or_class_has_an_empty_name() -> None:
    """Modules, packages and classes are not called manager, handler, helper, utils, common or data."""

    def names(path: Path) -> list[str]:
        classes = [node.name for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef)]
        return [path.parent.name, path.stem, *classes]

    found = [f"{relative(path)}: {name}" for path in sources("services", "tests") for name in names(path)]
    assert found
    assert [line for line in found if words(line.rpartition(": ")[2]) & EMPTY_NAMES] == []


def test_every_test_states_its_fact() -> None:
    """Each test function opens with a docstring."""
    tests = [
        (path, node)
        for path in sources("tests")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert tests
    assert [f"{relative(path)}: {node.name}" for path, node in tests if not ast.get_docstring(node)] == []
