"""A tiny random model, real enough for vLLM and so fast that the plumbing around it shows."""

from __future__ import annotations

import shutil
from pathlib import Path

from services.cli.build_once import Progress, build_once

TINY_MODEL_NAME = "tiny-random-llama"
# The trailing number is raised when the model changes, so that cached ones are made anew.
_RECIPE = "tiny random llama 2"
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def make_tiny_model(directory: Path, tokenizer_from: Path, progress: Progress = print) -> Path:
    """Return ``directory`` holding a one-layer random Llama with the tokenizer of ``tokenizer_from``, made if absent.

    Its text is noise, but the same everywhere: the seed is fixed and the weights are float32. It keeps SmolLM2's
    vocabulary (49152), context (8192 tokens) and end-of-turn id (2), which greedy decoding hardly ever reaches: bound
    every generation by max_tokens. vLLM 0.32's CPU attention takes heads of 32, 64, 80, 96, 112, 128, 160, 192, 224,
    256 or 512 only, so 64 is split into two heads of 32. It loads with dtype float32, eagerly, in 1 GiB of KV cache.
    """
    return build_once(
        directory,
        recipe=_RECIPE,
        build=lambda partial, _: _build(partial, tokenizer_from),
        progress=progress,
    )


def _build(directory: Path, tokenizer_from: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=8192,
        # Tied or small weights only ever repeat the prompt's last token, and hide a test that mixes tokens up.
        tie_word_embeddings=False,
        initializer_range=0.2,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(20)
        model = LlamaForCausalLM(config).float()
    model.save_pretrained(directory)
    for name in _TOKENIZER_FILES:
        shutil.copyfile(tokenizer_from / name, directory / name)
