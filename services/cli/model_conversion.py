"""Turns SmolLM2's GGUF file into a directory that vLLM and the tokenizer tier read: ``python -m … GGUF DIRECTORY``.

It runs as a process of its own, so that whoever wants the model does not have to load transformers and torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CONTEXT_LENGTH = 8192


def convert(gguf: Path, directory: Path) -> None:
    """Write ``gguf``'s weights (float32 safetensors), configuration, tokenizer and chat template to ``directory``."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    quantization = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=quantization, dtype="float32"
    )
    model.save_pretrained(directory)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(directory)
    restore_tokenizer(directory)
    restore_config(directory)
    set_sampling(directory)


def restore_tokenizer(directory: Path) -> None:
    """Put back what GGUF's fields do not carry and transformers therefore guesses wrong.

    GGUF names the splitting rule only ("smollm"). By that name llama.cpp first splits off every number character,
    then applies GPT-2's expression, which is the ``Digits`` and ``ByteLevel`` pair of the model's own tokenizer.json.
    """
    path = directory / "tokenizer.json"
    tokenizer = _read(path)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, byte_level]}
    tokenizer["post_processor"] = None
    _write(path, tokenizer)

    path = directory / "tokenizer_config.json"
    config = _read(path)
    for name in ("is_local", "local_files_only"):
        config.pop(name, None)
    config.update(add_prefix_space=False, clean_up_tokenization_spaces=False, model_max_length=CONTEXT_LENGTH)
    _write(path, config)


def restore_config(directory: Path) -> None:
    """Undo the float32 rounding of the norm's epsilon, and drop the name of the pre-training run."""
    path = directory / "config.json"
    config = _read(path)
    config.pop("_model_name_or_path", None)
    config["rms_norm_eps"] = 1e-05
    _write(path, config)


def set_sampling(directory: Path) -> None:
    """Make the sampling that the model's card recommends the default; at temperature 1 so small a model rambles.

    vLLM takes the defaults of unset parameters from this file. Source: https://hf.co/HuggingFaceTB/SmolLM2-135M-Instruct
    """
    path = directory / "generation_config.json"
    config = _read(path)
    config.update(do_sample=True, temperature=0.2, top_p=0.9)
    _write(path, config)


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
