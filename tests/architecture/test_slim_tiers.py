"""The frontend and the tokenizer need neither torch nor vLLM: each is installed alone, and all of it imported."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source_tree import REPOSITORY

PACKAGED = ("pyproject.toml", "README.md", "LICENSE", "services", "protos")
# Imports each module of the tier and of the chassis, then asks for what must not be there.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, sys

names = []
for package in ("services.chassis", f"services.{sys.argv[1]}"):
    path = importlib.import_module(package).__path__
    names += [package, *(module.name for module in pkgutil.walk_packages(path, package + "."))]
for name in names:
    importlib.import_module(name)
for heavy in ("torch", "vllm", "transformers"):
    assert importlib.util.find_spec(heavy) is None, f"{heavy} is installed"
print(len(names))
"""


def pip(*arguments: str) -> None:
    """Run pip; its output is shown when the test fails."""
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy so that the build leaves nothing in the repository."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in PACKAGED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, copy / name)
    pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy))
    return next(out.glob("*.whl"))


def test_wheel_holds_every_source_file(wheel: Path) -> None:
    """Code, generated code and its sources, type markers and the web page's files are all packaged."""
    packaged = set(zipfile.ZipFile(wheel).namelist())
    suffixes = {".py", ".pyi", ".proto", ".typed", ".html", ".css", ".js"}
    services = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "services").rglob("*")}
    protos = {path.relative_to(REPOSITORY / "protos") for path in (REPOSITORY / "protos" / "streamomni").rglob("*")}
    expected = {str(path) for path in services | protos if path.suffix in suffixes}
    assert "streamomni/engine/v1/engine_pb2.py" in expected
    assert expected - packaged == set()


@pytest.mark.parametrize("tier", ["tokenizer", "frontend"])
def test_tier_imports_without_torch_and_vllm(tier: str, wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment made from the tier's list alone, all of its modules and the chassis import."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    requirements = REPOSITORY / "requirements" / f"{tier}.txt"
    pip("--python", str(python), "install", "--quiet", "--no-deps", "-r", str(requirements), str(wheel))
    # Isolated mode: neither this repository nor the caller's PYTHONPATH may stand in for what is not installed.
    command = [str(python), "-I", "-c", IMPORT_ALL, tier]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
