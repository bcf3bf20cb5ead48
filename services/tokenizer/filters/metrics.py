"""Metrics of output filters."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter

from services.tokenizer.filters.rule import Rule
from services.tokenizer.findings import FilterMatch


class FilterMetrics:
    """Counts matches. Its series are those of the rules there are, so that their number is bounded."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._matches = Counter(
            "streamomni:text_filter_matches",
            "Matches of output filters, by rule and action.",
            ["rule", "action"],
            registry=registry,
        )
        self._failed_reads = Counter(
            "streamomni:text_filter_failed_reads",
            "Versions of the filters file that were refused, so that older rules stayed.",
            registry=registry,
        )

    def follow(self, rules: Iterable[Rule]) -> None:
        """Have series for these rules alone; those that stay keep their counts."""
        wanted = {(rule.name, rule.action.value) for rule in rules}
        known = {
            (sample.labels["rule"], sample.labels["action"])
            for metric in self._matches.collect()
            for sample in metric.samples
        }
        for labels in known - wanted:
            self._matches.remove(*labels)
        for labels in wanted:
            self._matches.labels(*labels)

    def matched(self, match: FilterMatch) -> None:
        """Count a match."""
        self._matches.labels(match.rule, match.action.value).inc()

    def refused(self) -> None:
        """Count a version of the file that was refused."""
        self._failed_reads.inc()
