"""The tiny random model with tools and reasoning."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tiny_tools_model import RENAMED_TOKENS, make_tiny_tools_model


def test_only_names_and_the_template_differ(tiny_model: Path, tmp_path: Path) -> None:
    """Weights and vocabulary are the tiny model's but for the names of two tokens, which are not special."""
    made = make_tiny_tools_model(tmp_path / "made", tiny_model)
    for name in ("config.json", "model.safetensors", "tokenizer_config.json"):
        assert (made / name).read_bytes() == (tiny_model / name).read_bytes()
    tokenizers = [json.loads((path / "tokenizer.json").read_text()) for path in (tiny_model, made)]
    by_id = [{token_id: text for text, token_id in each["model"]["vocab"].items()} for each in tokenizers]
    assert by_id[0] | RENAMED_TOKENS == by_id[1]
    special = {added["id"] for added in tokenizers[1]["added_tokens"] if added["special"]}
    assert special.isdisjoint(RENAMED_TOKENS)
    assert "<tools>" in (made / "chat_template.jinja").read_text()
