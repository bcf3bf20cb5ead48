"""What can be found wrong before anything is started."""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.cli.arguments import UsageError
from services.cli.up_settings import OwnPort

# Of Hugging Face: an optional owner and a name.
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# NVIDIA's, NVIDIA's under WSL, AMD's.
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_FLOAT32_BYTES = 4
# Bytes a weight of the types that are kept as they are on disk; others are quantized, and guessing would not be honest.
_WEIGHT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# The engine's own default on a CPU.
_KV_CACHE_BYTES = 2 * 1024**3
_GIB = 1024**3


def locate_model(model: str) -> str:
    """Return a model's directory as an absolute path, or its hub id as it is.

    Raises:
        UsageError: it is neither, or the directory holds no model.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"{path} holds no config.json; give a model's directory in Hugging Face's layout")
        return str(path.resolve())
    if path.exists():
        raise UsageError(f"{path} is a file; give the directory that holds the model")
    # What lies below a directory that is here was meant as a path.
    if not _HUB_ID.fullmatch(model) or (path.parent != Path() and path.parent.is_dir()):
        raise UsageError(
            f"there is no model directory {path}; give one that exists, or a hub id such as Qwen/Qwen3-0.6B"
        )
    return model


def check_ports(ports: Sequence[OwnPort]) -> None:
    """Check that all ports can be opened.

    Raises:
        UsageError: naming each that cannot, and the option that changes it.
    """
    faults = [f"port {own.number} ({own.option}) {fault}" for own in ports if (fault := _fault_of(own))]
    if faults:
        raise UsageError(f"{', '.join(faults)}; end what uses them or choose others by these options")


def check_memory(model: str, engine_args: Mapping[str, Any], available_bytes: int | None) -> None:
    """Check roughly that a model's weights and KV cache fit into a CPU's memory.

    A hub id's size is not known before it is fetched, so it passes, and so does everything where there is a GPU.

    Args:
        available_bytes: see `available_memory`; None passes.

    Raises:
        UsageError: with the figures.
    """
    if available_bytes is None or not Path(model).is_dir() or any(Path(device).exists() for device in _GPU_DEVICES):
        return
    weights = _weights_in_memory(Path(model), engine_args.get("dtype", "float32"))
    cache = engine_args.get("kv_cache_memory_bytes", _KV_CACHE_BYTES)
    cache = cache if isinstance(cache, int) else _KV_CACHE_BYTES
    if weights + cache > available_bytes:
        raise UsageError(
            f"the model needs about {(weights + cache) / _GIB:.1f} GiB of memory ({weights / _GIB:.1f} for its weights,"
            f" {cache / _GIB:.1f} for the KV cache) and {available_bytes / _GIB:.1f} GiB are available; free some,"
            " choose a smaller model, or a smaller cache by --engine-arg kv-cache-memory-bytes=BYTES"
        )


def available_memory() -> int | None:
    """Return the memory, in bytes, that new processes can take (MemAvailable of proc(5)); None where it is not told."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _fault_of(own: OwnPort) -> str | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(own.host, own.number, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: connections that ended a minute ago do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened on {own.host}: {error.strerror}"
    return None


def _weights_in_memory(directory: Path, dtype: object) -> int:
    """The weights' size, in bytes, as the engine will hold them."""
    on_disk = next((size for pattern in _WEIGHTS if (size := _size(directory, pattern))), 0)
    stored = _WEIGHT_BYTES.get(_stored_dtype(directory))
    if stored is None:
        return on_disk
    return on_disk * _WEIGHT_BYTES.get(str(dtype), _FLOAT32_BYTES) // stored


def _size(directory: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in directory.glob(pattern) if path.is_file())


def _stored_dtype(directory: Path) -> str:
    try:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # The engine will say what is wrong with it.
        return ""
    if not isinstance(config, dict) or "quantization_config" in config:
        return ""
    return str(config.get("dtype") or config.get("torch_dtype") or "")
