"""What the tier needs of a classifier, and how one is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from services.chassis.settings import SettingsError
from services.tokenizer.findings import FilterAction


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a classifier says of a text: the action, STOP or REPORT, and the name under which that is told."""

    action: FilterAction
    label: str


class Classifier(Protocol):
    """Judges texts. It is called in threads, several at a time."""

    def judge(self, text: str) -> Verdict | None:
        """Judge some sentences of an answer, None where there is nothing to tell. May raise what it wants."""


NewClassifier = Callable[[Path | None], Classifier]
"""Makes a classifier of its file."""


def load_classifier(import_path: str, path: Path | None) -> Classifier:
    """Make the classifier that is found under `MODULE:NAME`.

    Args:
        path: its file, if there is one.

    Raises:
        SettingsError: there is no such thing, or it cannot be made of the file.
    """
    module, _, name = import_path.partition(":")
    try:
        new_classifier: NewClassifier = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"classifier {import_path} cannot be imported: {error}; write MODULE:NAME") from error
    return new_classifier(path)
