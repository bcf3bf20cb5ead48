"""Writes the pinned requirement lists beside this file from the extras in pyproject.toml: ``make lock``.

The CPU lists come from one resolve, so that they agree and one environment can hold them all: each list is what the
tier's own extra reaches in it. Nothing is installed. The GPU engine has another vLLM and another torch, so it has a
resolve of its own, held to the tokenizer's and frontend's versions of what they share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
CPU_LISTS = {"engine-cpu": "engine", "tokenizer": "tokenizer", "frontend": "frontend", "cli": "cli", "dev": "dev"}
GPU_LIST, GPU_EXTRA = "engine-gpu", "engine-gpu"
# vLLM asks for these, nothing here uses them, and beside a CPU build of torch their builds break vLLM's import.
UNUSABLE_ON_CPU = frozenset({"torchvision", "torchaudio", "torchcodec"})


@dataclass(frozen=True, slots=True)
class Pin:
    """One resolved distribution and what it requires in turn."""

    name: str
    version: str
    requires: tuple[Requirement, ...]


def resolve(wanted: Iterable[Requirement], environ: Mapping[str, str], *options: str) -> dict[str, Pin]:
    """Let pip resolve ``wanted`` without installing it; returns the pins by canonical name."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
        # fast-deps reads a wheel's metadata by range requests, which spares gigabytes of GPU libraries.
        command = [*pip, "--use-feature", "fast-deps", "--report", str(report), *options, *map(str, wanted)]
        subprocess.run(command, check=True, env=dict(environ))
        installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {pin.name: pin for pin in (_pin(install["metadata"]) for install in installs)}


def reached(wanted: Iterable[Requirement], pins: Mapping[str, Pin], without: frozenset[str] = frozenset()) -> list[Pin]:
    """The pins that ``wanted`` needs, directly or through others, in order of their names."""
    seen: set[tuple[str, str]] = set()
    queue = [(requirement, "") for requirement in wanted]
    while queue:
        requirement, extra = queue.pop()
        name = canonicalize_name(requirement.name)
        if name in without or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        for chosen in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, chosen))
            queue.extend((needed, chosen) for needed in pins[name].requires)
    return [pins[name] for name in sorted({name for name, _ in seen})]


def write(name: str, pins: Iterable[Pin]) -> None:
    """Write the list ``name``.txt; one pin a line."""
    lines = ["# Written by `make lock`; install with `pip install --no-deps -r`."]
    lines += [f"{pin.name}=={pin.version}" for pin in pins]
    (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"requirements/{name}.txt: {len(lines) - 1} packages", flush=True)


def _pin(metadata: Mapping[str, object]) -> Pin:
    requires = metadata.get("requires_dist", [])
    assert isinstance(requires, list)
    return Pin(
        canonicalize_name(str(metadata["name"])),
        str(metadata["version"]),
        tuple(Requirement(text) for text in requires),
    )


def main() -> None:
    """Resolve and write all lists."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = [Requirement(text) for text in project["dependencies"]]
    extras = {name: [*base, *map(Requirement, texts)] for name, texts in project["optional-dependencies"].items()}
    every_cpu = {str(needed): needed for extra in CPU_LISTS.values() for needed in extras[extra]}
    pins = resolve(every_cpu.values(), os.environ)
    for name, extra in CPU_LISTS.items():
        write(name, reached(extras[extra], pins, UNUSABLE_ON_CPU))

    shared = reached([*extras["tokenizer"], *extras["frontend"]], pins)
    # A machine whose pip is set up to find torch's CPU build would lock that one for the GPU.
    environ = os.environ | {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.writelines(f"{pin.name}=={pin.version}\n" for pin in shared)
        constraints.flush()
        gpu_pins = resolve(extras[GPU_EXTRA], environ, "--constraint", constraints.name)
    write(GPU_LIST, reached(extras[GPU_EXTRA], gpu_pins))


if __name__ == "__main__":
    main()
