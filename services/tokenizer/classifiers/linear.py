"""A logistic regression over words: small, fast, and without a library.

Its file is TOML: `label`, `action` ("stop" or "report"), `bias`, `threshold` (a probability) and a table `weights` of
words, or of pairs of words with a space between them. Case, width and accents do not count.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from services.chassis.settings import SettingsError
from services.tokenizer.classifiers.port import Verdict
from services.tokenizer.filters.folding import Folder
from services.tokenizer.findings import FilterAction

_WORD = re.compile(r"\w+")
_KEYS = ("label", "action", "bias", "threshold", "weights")


class LinearClassifier:
    """A `Classifier`: the words of a text, each counted once, add up to the logarithm of its odds.

    Args:
        path: of its file.

    Raises:
        SettingsError: there is no file, or it is wrong.
    """

    def __init__(self, path: Path | None) -> None:
        if path is None:
            raise SettingsError("the linear classifier has no file; set OMNI_TOKENIZER_CLASSIFIER_FILE")
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise SettingsError(f"classifier file {path} cannot be read: {error.strerror}") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"classifier file {path} is not TOML: {error}") from error
        self._folder = Folder()
        if unknown := sorted(set(content) - set(_KEYS)):
            raise SettingsError(f"classifier file {path}: {unknown[0]} is unknown; allowed are {', '.join(_KEYS)}")
        try:
            self._verdict = Verdict(FilterAction(content["action"]), str(content["label"]))
            self._bias = float(content["bias"])
            self._least = _odds(float(content["threshold"]))
            self._weights = self._folded(content["weights"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SettingsError(
                f"classifier file {path} is wrong ({error}); it needs label, action, bias, threshold between 0 and 1"
                " and weights"
            ) from error
        if self._verdict.action is FilterAction.MASK:
            raise SettingsError(f"classifier file {path}: action is mask; write stop or report")

    def judge(self, text: str) -> Verdict | None:
        """See `Classifier`."""
        words = _WORD.findall(self._folder.fold(text).text)
        features = {*words, *(f"{first} {second}" for first, second in pairwise(words))}
        score = self._bias + sum(self._weights.get(feature, 0.0) for feature in features)
        return self._verdict if score >= self._least else None

    def _folded(self, weights: Mapping[str, Any]) -> Mapping[str, float]:
        return {self._folder.fold(word).text: float(weight) for word, weight in weights.items()}


def _odds(probability: float) -> float:
    return math.log(probability / (1 - probability)) if probability < 1 else math.log(0)
