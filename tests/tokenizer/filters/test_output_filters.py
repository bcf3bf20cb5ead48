"""The filters in force: who they apply to, and how a changed file is taken over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry

from services.chassis.settings import SettingsError
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.filters.output_filters import OutputFilters
from services.tokenizer.findings import Findings
from tests.tokenizer.choice_recorder import Recorder
from tests.tokenizer.engine_fixtures import until
from tests.tokenizer.filters.rule_sets import filters_of
from tests.tokenizer.filters.test_filter_stage import Asked

SCOPED = """
[[rule]]
name = "all"
action = "mask"
words = ["red"]
[[rule]]
name = "model m"
action = "mask"
words = ["green"]
models = ["m"]
[[rule]]
name = "caller a"
action = "mask"
words = ["blue"]
callers = ["a"]
[[rule]]
name = "reported"
action = "report"
words = ["red"]
callers = ["a"]
"""


def shown(filters: OutputFilters, text: str, model: str = "m", caller: str = "") -> str:
    """What comes out of a text."""
    new_stage = filters.stage(model, caller, "r-1", lambda _: None)
    if new_stage is None:
        return text
    reader = Recorder()
    stage = new_stage(1, reader, Findings())
    stage.choice = Asked(0)
    stage.choice_delta(1, [1], text, None)
    stage.choice_finished(1, Finish(FinishReason.STOP, None, Usage(1, 1, 0)))
    return reader.text


def rule(word: str, name: str = "r") -> str:
    """A file with one rule of one word."""
    return f'[[rule]]\nname = "{name}"\naction = "mask"\nwords = ["{word}"]\n'


@pytest.mark.parametrize(
    ("model", "caller", "expected"),
    [
        ("m", "a", "███ █████ ████"),
        ("m", "b", "███ █████ blue"),
        ("n", "a", "███ green ████"),
        ("n", "", "███ green blue"),
    ],
)
def test_rules_apply_by_model_and_caller(tmp_path: Path, model: str, caller: str, expected: str) -> None:
    """A request gets the rules for all, those of its model and those of its key's name, together."""
    assert shown(filters_of(tmp_path / "f.toml", SCOPED), "red green blue", model, caller) == expected


def test_no_rule_no_stage(tmp_path: Path) -> None:
    """Where no rule applies there is no stage at all, so that nothing costs anything."""
    filters = filters_of(tmp_path / "f.toml", rule("x") + 'callers = ["a"]\n')
    assert filters.stage("m", "b", "r-1", lambda _: None) is None
    assert filters.stage("m", "a", "r-1", lambda _: None) is not None


def test_a_file_without_rules(tmp_path: Path) -> None:
    """An empty file filters nothing; it may be filled later."""
    assert filters_of(tmp_path / "f.toml", "").stage("m", "", "r-1", lambda _: None) is None


async def test_a_changed_file_is_taken_over(tmp_path: Path) -> None:
    """A new version holds for what begins from then on, not for what is under way; a wrong one is logged and counted
    once and changes nothing, until a good one comes. The series of a rule that is gone goes with it."""
    path, registry = tmp_path / "f.toml", CollectorRegistry()
    filters = filters_of(path, rule("red"), registry)
    under_way = filters.stage("m", "", "r-1", lambda _: None)
    following = asyncio.create_task(filters.follow())
    try:
        with structlog.testing.capture_logs() as lines:
            path.write_text(rule("blue!"))
            await until(lambda: shown(filters, "red blue!") == "red █████")
            path.write_text("[[rule]]\nname = 3")
            await until(lambda: any(line["log_level"] == "error" for line in lines))
            await asyncio.sleep(1.2)
            assert shown(filters, "red blue!") == "red █████"
            path.write_text(rule("green", "other"))
            await until(lambda: shown(filters, "red green") == "red █████")
    finally:
        following.cancel()
    assert under_way is not None
    told = [line for line in lines if line["log_level"] == "error"]
    assert len(told) == 1 and "rule 1 has no name" in told[0]["error"]
    assert registry.get_sample_value("streamomni:text_filter_failed_reads_total") == 1
    series = [sample.labels for family in registry.collect() for sample in family.samples if "rule" in sample.labels]
    assert {labels["rule"] for labels in series} == {"other"}


async def test_a_changed_word_file_is_taken_over(tmp_path: Path) -> None:
    """A word file's change counts as well as the rules'; one that is missing is waited for."""
    path, words = tmp_path / "f.toml", tmp_path / "words.txt"
    words.write_text("red\n")
    filters = filters_of(path, '[[rule]]\nname = "r"\naction = "mask"\nwords_file = "words.txt"\n')
    following = asyncio.create_task(filters.follow())
    try:
        words.write_text("red\nblue\n")
        await until(lambda: shown(filters, "blue") == "████")
        path.write_text('[[rule]]\nname = "r"\naction = "mask"\nwords_file = "more.txt"\n')
        await asyncio.sleep(1.5)
        assert shown(filters, "blue") == "████"
        (tmp_path / "more.txt").write_text("green\n")
        await until(lambda: shown(filters, "green blue") == "█████ blue")
    finally:
        following.cancel()


def test_a_broken_file_ends_the_start(tmp_path: Path) -> None:
    """At the start a wrong file is an error, not an empty list."""
    with pytest.raises(SettingsError, match="rule r: words is no list"):
        filters_of(tmp_path / "f.toml", '[[rule]]\nname = "r"\naction = "mask"\nwords = 3\n')
