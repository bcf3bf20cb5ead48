"""The linear classifier: what its file makes of a text, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.chassis.settings import SettingsError
from services.tokenizer.classifiers.linear import LinearClassifier
from services.tokenizer.classifiers.port import Verdict, load_classifier
from services.tokenizer.findings import FilterAction

WEIGHTS = """
label = "insults"
action = "stop"
bias = -3.0
threshold = 0.5
[weights]
Idiot = 2.0
stupid = 2.0
"stupid question" = -2.0
kind = -4.0
"""


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("You stupid IDIOT!", True),
        ("You ｓｔúpid, idiot.", True),
        ("You idiot, idiot, idiot.", False),
        ("An idiot with a stupid question.", False),
        ("A kind stupid idiot.", False),
        ("", False),
    ],
)
def test_words_add_up(tmp_path: Path, text: str, is_told: bool) -> None:
    """Each word counts once, whatever its case and accents, and pairs count beside their words."""
    path = tmp_path / "classifier.toml"
    path.write_text(WEIGHTS)
    classifier = load_classifier("services.tokenizer.classifiers.linear:LinearClassifier", path)
    assert classifier.judge(text) == (Verdict(FilterAction.STOP, "insults") if is_told else None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("label =", "is not TOML"),
        (WEIGHTS.replace("bias", "biass"), "biass is unknown; allowed are label"),
        (WEIGHTS.replace("bias = -3.0\n", ""), "is wrong .'bias'.; it needs label"),
        (WEIGHTS.replace("0.5", "1.0"), "threshold between 0 and 1"),
        (WEIGHTS.replace("stop", "mask"), "action is mask; write stop or report"),
        (WEIGHTS.replace("stop", "shout"), "is wrong"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str | None, message: str) -> None:
    """A file that is missing or wrong is refused with one line."""
    path = tmp_path / "classifier.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        LinearClassifier(path)


@pytest.mark.parametrize("import_path", ["no.such.module:X", "services.tokenizer.classifiers.linear:Missing"])
def test_no_such_classifier(import_path: str) -> None:
    """An import path that leads nowhere is refused by name."""
    with pytest.raises(SettingsError, match=f"classifier {import_path} cannot be imported"):
        load_classifier(import_path, None)


def test_the_linear_classifier_wants_a_file() -> None:
    """Without a file it says which setting names one."""
    with pytest.raises(SettingsError, match="set OMNI_TOKENIZER_CLASSIFIER_FILE"):
        LinearClassifier(None)
