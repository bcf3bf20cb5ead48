"""The models that the text services offer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ModelState(Enum):
    """State of a model, the best for callers first."""

    READY = "ready"
    LOADING = "loading"
    DRAINING = "draining"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Model:
    """One model; `created_unix_s` in seconds, `context_length` in tokens."""

    name: str
    state: ModelState
    created_unix_s: int
    context_length: int


def merged(lists: Iterable[Iterable[Model]]) -> list[Model]:
    """Merge several services' lists, in order of name; of one name the best state counts."""
    order = list(ModelState)
    best: dict[str, Model] = {}
    for models in lists:
        for model in models:
            known = best.get(model.name)
            if known is None or order.index(model.state) < order.index(known.state):
                best[model.name] = model
    return [best[name] for name in sorted(best)]
