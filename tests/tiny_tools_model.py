"""The tiny random model with what SmolLM2 lacks: a chat template with tools, and reasoning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from services.cli.build_once import MARKER_NAME, Progress, build_once
from tests.tools_template import with_tools

TINY_TOOLS_MODEL_NAME = "tiny-random-llama-tools"
# Two of SmolLM2's tokens that no chat has become marks of reasoning, which models with reasoning do not call special.
RENAMED_TOKENS = {15: "<think>", 16: "</think>"}
# The trailing number is raised when the model changes, so that cached ones are made anew.
_RECIPE = "tiny random llama with tools 1"


def make_tiny_tools_model(directory: Path, tiny: Path, progress: Progress = print) -> Path:
    """Return ``directory`` holding the tiny model of ``tiny`` with a template that shows tools, and with the variable
    `thinking` opens reasoning, and with tokens that enclose it; made if absent."""

    def build(partial: Path, _: Progress) -> None:
        shutil.copytree(tiny, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MARKER_NAME))
        tokenizer_file, template = partial / "tokenizer.json", partial / "chat_template.jinja"
        tokenizer = json.loads(tokenizer_file.read_text(encoding="utf-8"))
        _rename_tokens(tokenizer)
        tokenizer_file.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
        template.write_text(with_tools(template.read_text(encoding="utf-8")), encoding="utf-8")

    return build_once(directory, recipe=f"{_RECIPE} {with_tools('')}", build=build, progress=progress)


def _rename_tokens(tokenizer: dict[str, Any]) -> None:
    vocabulary = tokenizer["model"]["vocab"]
    for added in tokenizer["added_tokens"]:
        if name := RENAMED_TOKENS.get(added["id"]):
            del vocabulary[added["content"]]
            vocabulary[name] = added["id"]
            added.update(content=name, special=False)
