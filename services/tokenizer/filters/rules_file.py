"""The file of filter rules: TOML, one `[[rule]]` table a rule."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.chassis.settings import SettingsError
from services.tokenizer.filters.folding import fold_character
from services.tokenizer.filters.pattern_syntax import PatternError, parse_pattern
from services.tokenizer.filters.rule import Rule, Scope
from services.tokenizer.findings import FilterAction

MAX_RULES = 1000
MAX_WORD = 256
"""Characters of a word. Bounds the text that is held back."""
MAX_WORDS_CHARACTERS = 2_000_000
"""Characters of all words of a file, which bounds the memory that they take."""
MAX_NAME = 64

_KEYS = ("name", "action", "words", "words_file", "patterns", "mask", "models", "callers", "whole_words", "fold")
_ACTIONS = {action.value: action for action in FilterAction}


# What tells that a file has changed: time of its last change in ns, and size.
Version = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class RulesFile:
    """What was read: the rules in order, and the versions of all files that they are from."""

    rules: Sequence[Rule]
    versions: Mapping[Path, Version]


def read_rules(path: Path) -> RulesFile:
    """Read the rules of a file and of the word files that it names, whose paths begin at the file's folder.

    Raises:
        SettingsError: a file cannot be read, or a rule is wrong; the text names the rule.
    """
    # Looked at before it is read, so that a change in between counts as one that comes later.
    versions = {path: version(path)}
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"filters file {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"filters file {path} is not TOML: {error}") from error
    try:
        versions |= {name: version(name) for name in _word_files(content, path.parent)}
        return RulesFile(_rules(content, path.parent), versions)
    except _Wrong as error:
        raise SettingsError(f"filters file {path}: {error}") from error


def version(path: Path) -> Version:
    """The version of a file; None: there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


class _Wrong(Exception):
    """A rule is wrong; the text says how."""


def _word_files(content: Mapping[str, Any], folder: Path) -> Sequence[Path]:
    tables = content.get("rule")
    names = [table.get("words_file") for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    return [folder / name for name in names if isinstance(name, str)]


def _rules(content: Mapping[str, Any], folder: Path) -> Sequence[Rule]:
    tables = content.get("rule", [])
    if unknown := sorted(set(content) - {"rule"}):
        raise _Wrong(f"{unknown[0]} is unknown; only [[rule]] tables are allowed, so remove it")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _Wrong("rule is no list of tables; begin each rule with [[rule]]")
    if len(tables) > MAX_RULES:
        raise _Wrong(f"it has {len(tables)} rules; at most {MAX_RULES} are allowed, so put lists together")
    rules: dict[str, Rule] = {}
    for number, table in enumerate(tables, 1):
        name = table.get("name")
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
            raise _Wrong(f"rule {number} has no name; give it one of 1 to {MAX_NAME} printable characters")
        if name in rules:
            raise _Wrong(f"two rules are named {name}; give each a name of its own")
        try:
            rules[name] = _rule(name, table, folder)
        except _Wrong as error:
            raise _Wrong(f"rule {name}: {error}") from error
    characters = sum(len(word) for rule in rules.values() for word in rule.words)
    if characters > MAX_WORDS_CHARACTERS:
        raise _Wrong(f"its words have {characters} characters; at most {MAX_WORDS_CHARACTERS} are allowed; shorten it")
    return tuple(rules.values())


def _rule(name: str, table: Mapping[str, Any], folder: Path) -> Rule:
    if unknown := [key for key in table if key not in _KEYS]:
        raise _Wrong(f"{unknown[0]} is unknown; allowed are {', '.join(_KEYS)}")
    action = _ACTIONS.get(str(table.get("action")))
    if action is None:
        raise _Wrong(f"action is {table.get('action')!r}; write one of {', '.join(_ACTIONS)}")
    fold = _flag(table, "fold", True)
    words = [*_strings(table, "words"), *_words_of_file(table, folder)]
    patterns = _strings(table, "patterns")
    if not words and not patterns:
        raise _Wrong("it has no words and no patterns; give words, words_file or patterns")
    mask = table.get("mask", "█")
    if not isinstance(mask, str) or len(mask) != 1 or not mask.isprintable():
        raise _Wrong(f"mask is {mask!r}; write one printable character, which stands for each that it replaces")
    if "mask" in table and action is not FilterAction.MASK:
        raise _Wrong(f"mask is for rules that mask, but its action is {action.value}; remove one of the two")
    trees = []
    for pattern in patterns:
        try:
            trees.append(parse_pattern(pattern, fold))
        except PatternError as error:
            raise _Wrong(f"pattern {pattern!r} {error}") from error
    return Rule(
        name=name,
        action=action,
        words=tuple(dict.fromkeys(_word(word, fold) for word in words)),
        patterns=tuple(trees),
        mask=mask,
        whole_words=_flag(table, "whole_words", False),
        fold=fold,
        scope=Scope(_names(table, "models"), _names(table, "callers")),
    )


def _word(word: str, fold: bool) -> str:
    folded = "".join(map(fold_character, unicodedata.normalize("NFC", word))) if fold else word
    if not folded:
        raise _Wrong(f"the word {word!r} is empty{' when folded' if word else ''}; remove it")
    if max(len(word), len(folded)) > MAX_WORD:
        raise _Wrong(f"a word has {len(word)} characters; at most {MAX_WORD} are allowed, so shorten it")
    return folded


def _words_of_file(table: Mapping[str, Any], folder: Path) -> Sequence[str]:
    name = table.get("words_file")
    if name is None:
        return ()
    if not isinstance(name, str):
        raise _Wrong("words_file is no string; write the path of a file with one word a line")
    path = folder / name
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise _Wrong(f"words_file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _Wrong(f"words_file {path} is not UTF-8; save it as such") from error
    words = [line.strip() for line in lines]
    return [word for word in words if word and not word.startswith("#")]


def _strings(table: Mapping[str, Any], key: str) -> Sequence[str]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _Wrong(f"{key} is no list of strings; write one")
    return values


def _names(table: Mapping[str, Any], key: str) -> frozenset[str] | None:
    if key not in table:
        return None
    names = frozenset(_strings(table, key))
    if not names:
        raise _Wrong(f"{key} is empty, so the rule applies nowhere; name some, or leave it out for all")
    return names


def _flag(table: Mapping[str, Any], key: str, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise _Wrong(f"{key} is {value!r}; write true or false")
    return value
