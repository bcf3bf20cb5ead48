"""The filters that are in force: read from their file, taken over when it changes, chosen for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from services.chassis.rereading import reread
from services.chassis.settings import SettingsError
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.filters.channel import ActiveRules
from services.tokenizer.filters.filter_stage import FilterStage
from services.tokenizer.filters.folding import Folder
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.pattern_syntax import PatternError
from services.tokenizer.filters.rule import Rule, Scope
from services.tokenizer.filters.rules_file import Version, read_rules, version
from services.tokenizer.filters.scanner import Finders, Scanner, finders
from services.tokenizer.findings import FilterAction, Findings
from services.tokenizer.output_stage import NewStage, OutputStage

log = structlog.get_logger(__name__)

# Combinations of scopes that are kept ready; each has moves of its own.
_COMBINATIONS = 32


@dataclass(frozen=True, slots=True)
class _Scoped:
    """The rules of one scope, compiled: those that mask or stop, and those that report."""

    scope: Scope
    guard: Finders | None
    watch: Finders | None


@dataclass(frozen=True, slots=True)
class _Compiled:
    """One version of the file."""

    rules: Sequence[Rule]
    scoped: Sequence[_Scoped]
    versions: Mapping[Path, Version]
    folder: Folder = field(default_factory=Folder)
    ready: dict[tuple[int, ...], ActiveRules] = field(default_factory=dict)

    def active(self, model: str, caller: str) -> ActiveRules | None:
        """The rules for a request; None: none apply."""
        chosen = tuple(at for at, scoped in enumerate(self.scoped) if scoped.scope.holds(model, caller))
        if not chosen:
            return None
        active = self.ready.get(chosen)
        if active is None:
            if len(self.ready) >= _COMBINATIONS:
                self.ready.clear()
            guards = [guard for at in chosen if (guard := self.scoped[at].guard) is not None]
            watches = [watch for at in chosen if (watch := self.scoped[at].watch) is not None]
            active = self.ready[chosen] = ActiveRules(
                self.rules,
                Scanner(guards, self.folder) if guards else None,
                Scanner(watches, self.folder) if watches else None,
            )
        return active


class OutputFilters:
    """All rules of a file.

    Args:
        path: of the file.
        metrics: count matches.

    Raises:
        SettingsError: the file cannot be read, or a rule is wrong.
    """

    def __init__(self, path: Path, metrics: FilterMetrics) -> None:
        self._path = path
        self._metrics = metrics
        self._compiled = _compile(path)
        # What the file has become cannot be used.
        self._wrong = False
        metrics.follow(self._compiled.rules)
        log.info("filters read", rules=len(self._compiled.rules))

    async def follow(self) -> None:
        """Take over changes of the files until cancelled. A version that is wrong is refused: the rules before it stay,
        which is logged once. What is under way keeps the rules with which it began."""
        await reread(self._take_over, self._refused)

    async def _take_over(self) -> None:
        before = self._compiled.versions
        # A wrong version may name files that are not watched yet, so it is read again each time.
        if not self._wrong and await asyncio.to_thread(_versions, before) == before:
            return
        self._wrong = True
        compiled = await asyncio.to_thread(_compile, self._path)
        self._wrong = False
        self._compiled = compiled
        self._metrics.follow(compiled.rules)
        log.info("filters read again", rules=len(compiled.rules))

    def _refused(self, wrong: str) -> None:
        self._metrics.refused()
        log.error("filters not read again; those read before stay", error=wrong)

    def stage(self, model: str, caller: str, request_id: str, withheld: Callable[[int], None]) -> NewStage | None:
        """What makes a choice's stage; None where no rule applies.

        Args:
            model, caller: of the request.
            request_id: for the log.
            withheld: told of each number of tokens that do not go out.
        """
        active = self._compiled.active(model, caller)
        if active is None:
            return None
        metrics = self._metrics

        def new_stage(index: int, reader: ChoiceReader, findings: Findings) -> OutputStage:
            return FilterStage(index, reader, findings, active, request_id, metrics, withheld)

        return new_stage


def _compile(path: Path) -> _Compiled:
    try:
        file = read_rules(path)
        scopes: dict[Scope, dict[int, Rule]] = {}
        for position, rule in enumerate(file.rules):
            scopes.setdefault(rule.scope, {})[position] = rule
        scoped = [_scoped(scope, rules) for scope, rules in scopes.items()]
    except PatternError as error:
        raise SettingsError(f"filters file {path}: a pattern {error}") from error
    return _Compiled(file.rules, scoped, file.versions)


def _scoped(scope: Scope, rules: dict[int, Rule]) -> _Scoped:
    watch = {at: rule for at, rule in rules.items() if rule.action is FilterAction.REPORT}
    guard = {at: rule for at, rule in rules.items() if at not in watch}
    return _Scoped(scope, finders(guard) if guard else None, finders(watch) if watch else None)


def _versions(paths: Iterable[Path]) -> Mapping[Path, Version]:
    return {path: version(path) for path in paths}
