"""The filters file: what it may hold, and the one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.chassis.settings import SettingsError
from services.tokenizer.filters.rule import Scope
from services.tokenizer.filters.rules_file import read_rules
from services.tokenizer.findings import FilterAction


def test_a_whole_file(tmp_path: Path) -> None:
    """Every field is read; word files lie beside the file; defaults are fold and the block."""
    path = tmp_path / "filters.toml"
    (tmp_path / "words.txt").write_text("# people\n\nÉclair\n  new york \n")
    path.write_text(
        """
        [[rule]]
        name = "names"
        action = "mask"
        words = ["Straße", "strasse"]
        words_file = "words.txt"
        mask = "*"
        models = ["m"]
        callers = ["a", "b"]
        whole_words = true

        [[rule]]
        name = "numbers"
        action = "stop"
        patterns = ['\\d{13,19}']
        fold = false
        """
    )
    file = read_rules(path)
    first, second = file.rules
    assert (first.name, first.action, first.mask) == ("names", FilterAction.MASK, "*")
    assert first.words == ("strasse", "eclair", "new york")
    assert (first.whole_words, first.fold) == (True, True)
    assert first.scope == Scope(frozenset({"m"}), frozenset({"a", "b"}))
    assert (second.action, second.fold, second.scope, len(second.patterns)) == (FilterAction.STOP, False, Scope(), 1)
    assert set(file.versions) == {path, tmp_path / "words.txt"}


def test_a_scope_holds_for_its_models_and_callers() -> None:
    """A rule with models and callers is for those together; the caller without a name is the empty one."""
    scope = Scope(frozenset({"m"}), frozenset({"", "a"}))
    assert [scope.holds(*asked) for asked in (("m", "a"), ("m", ""), ("m", "b"), ("n", "a"))] == [
        True,
        True,
        False,
        False,
    ]
    assert Scope().holds("any", "one")


def rule(fields: str) -> str:
    """A file with one rule."""
    return f'[[rule]]\nname = "r"\naction = "mask"\n{fields}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]", "is not TOML"),
        ("rules = []", "rules is unknown; only .*rule.* tables are allowed"),
        ("rule = 3", "rule is no list of tables"),
        ("[[rule]]\naction = 'mask'\nwords = ['a']", "rule 1 has no name"),
        (rule("words = ['a']") * 2, "two rules are named r"),
        (rule("word = ['a']"), "rule r: word is unknown; allowed are name, action"),
        (
            "[[rule]]\nname = 'r'\naction = 'delete'\nwords = ['a']",
            "action is 'delete'; write one of mask, stop, report",
        ),
        ("[[rule]]\nname = 'r'\naction = ['mask']\nwords = ['a']", "write one of mask, stop, report"),
        (rule(""), "no words and no patterns; give words, words_file or patterns"),
        (rule("words = 'a'"), "words is no list of strings"),
        (rule("words = ['']"), "is empty; remove it"),
        (rule("words = ['\u200b']"), "is empty when folded"),
        (rule(f"words = ['{'a' * 257}']"), "257 characters; at most 256"),
        (rule("words = ['a']\nmask = '**'"), "write one printable character"),
        ("[[rule]]\nname = 'r'\naction = 'stop'\nwords = ['a']\nmask = '*'", "its action is stop; remove one"),
        (rule("patterns = ['a+']"), r"rule r: pattern 'a\+' has a repetition without an end"),
        (rule("words = ['a']\nfold = 1"), "fold is 1; write true or false"),
        (rule("words = ['a']\nmodels = []"), "models is empty, so the rule applies nowhere"),
        (rule("words_file = 'none.txt'"), "none.txt cannot be read: No such file"),
        (rule("words_file = 3"), "words_file is no string"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    """A wrong file is refused with one line: which file and rule, what is wrong, what is allowed."""
    path = tmp_path / "filters.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message) as refusal:
        read_rules(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there is told by its path."""
    with pytest.raises(SettingsError, match=r"filters\.toml cannot be read: No such file"):
        read_rules(tmp_path / "filters.toml")
