"""Fixtures for all tests: models, and installations of single tiers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli.models import ensure_default_model, models_directory
from tests.tiny_model import TINY_MODEL_NAME, make_tiny_model

REPOSITORY = Path(__file__).parent.parent
PACKAGED = ("pyproject.toml", "README.md", "LICENSE", "services", "protos")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `make compatibility` asks for."""
    parser.addoption("--write-compatibility", action="store_true", help="write docs/compatibility.md anew")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The default model's directory."""
    return ensure_default_model(models_directory(os.environ), print)


@pytest.fixture(scope="session")
def tiny_model(smollm2: Path) -> Path:
    """The tiny random model's directory."""
    return make_tiny_model(smollm2.parent / TINY_MODEL_NAME, smollm2)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy so that the build leaves nothing in the repository."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in PACKAGED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, copy / name)
    _pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy))
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def slim_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the Python of a fresh environment made from one tier's list alone."""
    made: dict[str, Path] = {}

    def python_of(tier: str) -> Path:
        if tier not in made:
            environment = tmp_path_factory.mktemp(tier) / "venv"
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
            python = environment / "bin" / "python"
            requirements = str(REPOSITORY / "requirements" / f"{tier}.txt")
            _pip("--python", str(python), "install", "--quiet", "--no-deps", "-r", requirements, str(wheel))
            made[tier] = python
        return made[tier]

    return python_of


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)
