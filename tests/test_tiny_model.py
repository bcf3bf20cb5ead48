"""The tiny random model of the load and fault tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from services.cli.models import ensure_default_model, models_directory
from tests.tiny_model import make_tiny_model


def test_every_build_gives_the_same_model(tmp_path: Path) -> None:
    """Two builds are equal to the byte, so that token ids can be compared between runs."""
    default = ensure_default_model(models_directory(os.environ), print)
    first = make_tiny_model(tmp_path / "first", default)
    second = make_tiny_model(tmp_path / "second", default)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_tiny_model_reads_as_the_default_model_does(tmp_path: Path) -> None:
    """Vocabulary, context and special ids are the default model's, so that one can stand in for the other."""
    default = ensure_default_model(models_directory(os.environ), print)
    tiny = make_tiny_model(tmp_path / "tiny", default)
    names = ("vocab_size", "max_position_embeddings", "bos_token_id", "eos_token_id")
    configs = [json.loads((path / "config.json").read_text()) for path in (default, tiny)]
    assert [configs[0][name] for name in names] == [configs[1][name] for name in names]
    assert (default / "tokenizer.json").read_bytes() == (tiny / "tokenizer.json").read_bytes()
