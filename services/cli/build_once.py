"""Builds a directory once, whole or not at all, however often and from however many processes it is asked for."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Progress = Callable[[str], None]
Build = Callable[[Path, Progress], None]

MARKER_NAME = "stream-omni.json"
_LOCK_POLL_SECONDS = 0.2
_LOCK_NOTICE_SECONDS = 10.0


class BuildError(Exception):
    """A directory could not be built; the message is one line that says what to do."""


def build_once(target: Path, *, recipe: str, build: Build, progress: Progress) -> Path:
    """Return ``target``, built by ``build(partial_directory, progress)`` unless it is already there and whole.

    The build works in a directory beside the target, which one rename puts in place; what a killed build left
    behind is removed first. A file lock beside the target makes concurrent callers wait for one build. ``recipe``
    names what is built: a target made by another recipe, or one whose files were cut short, is built again.

    Raises:
        BuildError: the target exists but was not made here, or the directory cannot be written.
    """
    if is_whole(target, recipe):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f".{target.name}.lock"), progress):
            if not is_whole(target, recipe):
                _build(target, recipe, build, progress)
    except OSError as error:
        raise BuildError(f"cannot write {target}: {error}; free the space or choose another directory") from error
    return target


def is_whole(target: Path, recipe: str) -> bool:
    """Whether ``target`` was built by ``recipe`` and every file of it still has the size it was built with."""
    marker = _read_marker(target)
    if marker is None or marker.get("recipe") != recipe:
        return False
    sizes = marker.get("sizes")
    return isinstance(sizes, dict) and all(_size(target / name) == size for name, size in sizes.items())


def _build(target: Path, recipe: str, build: Build, progress: Progress) -> None:
    if target.exists() and _read_marker(target) is None:
        raise BuildError(f"{target} exists but was not made by stream-omni; move it away and run this again")
    prefix = f".{target.name}.partial-"
    for leftover in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # A new name each time: what a killed build started may still be writing under the old one.
    partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        build(partial, progress)
        _write_marker(partial, recipe)
        # mkdtemp makes it for its owner alone, but containers serve it under another user.
        partial.chmod(0o755)
        # A directory cannot be renamed onto one that has files in it.
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_marker(directory: Path, recipe: str) -> None:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    for path in files:
        # The rename must not reach the disk before the files do, or a power cut leaves empty ones under the final name.
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sizes = {str(path.relative_to(directory)): path.stat().st_size for path in files}
    marker = json.dumps({"recipe": recipe, "sizes": sizes}, indent=2)
    (directory / MARKER_NAME).write_text(marker + "\n", encoding="utf-8")


def _read_marker(target: Path) -> dict[str, object] | None:
    try:
        marker = json.loads((target / MARKER_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return marker if isinstance(marker, dict) else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


@contextlib.contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as lock:
        waited = 0.0
        while not _try_lock(lock.fileno()):
            if waited % _LOCK_NOTICE_SECONDS < _LOCK_POLL_SECONDS:
                progress(f"waiting for another process that is building this ({waited:.0f} s)")
            time.sleep(_LOCK_POLL_SECONDS)
            waited += _LOCK_POLL_SECONDS
        yield


def _try_lock(file_descriptor: int) -> bool:
    try:
        fcntl.flock(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
