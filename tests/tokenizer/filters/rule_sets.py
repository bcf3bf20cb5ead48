"""Filters of given rules, without a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.tokenizer.filters.channel import ActiveRules
from services.tokenizer.filters.filter_stage import FilterStage
from services.tokenizer.filters.folding import Folder
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.output_filters import OutputFilters
from services.tokenizer.filters.scanner import Scanner, finders
from services.tokenizer.findings import FilterAction
from services.tokenizer.output_stage import NewStage
from tests.tokenizer.filters.reference import Written


def active_rules(rules: Sequence[Written]) -> ActiveRules:
    """All of these rules, named by their positions."""
    made = [rule.rule(str(at)) for at, rule in enumerate(rules)]
    watch = {at: rule for at, rule in enumerate(made) if rule.action is FilterAction.REPORT}
    guard = {at: rule for at, rule in enumerate(made) if at not in watch}
    folder = Folder()
    return ActiveRules(
        made,
        Scanner([finders(guard)], folder) if guard else None,
        Scanner([finders(watch)], folder) if watch else None,
    )


def new_filter_stage(
    rules: Sequence[Written],
    withheld: Callable[[int], None] = lambda _: None,
    registry: CollectorRegistry | None = None,
) -> NewStage:
    """Makes stages of these rules."""
    active, metrics = active_rules(rules), FilterMetrics(registry or CollectorRegistry())
    return lambda index, reader, findings: FilterStage(index, reader, findings, active, "r-1", metrics, withheld)


def filters_of(path: Path, text: str, registry: CollectorRegistry | None = None) -> OutputFilters:
    """The filters of a file with this text."""
    path.write_text(text)
    return OutputFilters(path, FilterMetrics(registry or CollectorRegistry()))
