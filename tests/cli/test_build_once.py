"""Building a directory once, whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.cli.build_once import BuildError, Progress, build_once

REPOSITORY = Path(__file__).resolve().parents[2]
# Builds slowly, says when it has begun and counts the builds.
SLOW_BUILD = """
import sys, time
from pathlib import Path
from services.cli.build_once import build_once

target, counter, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])

def build(directory, progress):
    with counter.open("a") as file:
        file.write("built\\n")
    (directory / "first").write_text("half")
    time.sleep(seconds)
    (directory / "second").write_text("whole")

build_once(target, recipe="1", build=build, progress=print)
"""


def write_hello(directory: Path, progress: Progress) -> None:
    """Build a directory of one file."""
    progress("writing")
    (directory / "hello").write_text("hello")


def refuse(directory: Path, progress: Progress) -> None:
    """Fail the test that lets a build happen."""
    pytest.fail(f"built {directory} again")


def slow_build(target: Path, counter: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Start a process that builds ``target`` slowly."""
    command = [sys.executable, "-c", SLOW_BUILD, str(target), str(counter), str(seconds)]
    return subprocess.Popen(command, cwd=REPOSITORY)


def wait_for(directory: Path, pattern: str) -> None:
    """Wait until a file of that pattern is in ``directory``."""
    deadline = time.monotonic() + 20
    while not list(directory.glob(pattern)):
        assert time.monotonic() < deadline, f"{pattern} never came"
        time.sleep(0.02)


def test_second_call_reuses_what_the_first_built(tmp_path: Path) -> None:
    """A whole target is returned as it is."""
    target = tmp_path / "new" / "target"
    assert build_once(target, recipe="1", build=write_hello, progress=print) == target
    assert build_once(target, recipe="1", build=refuse, progress=print) == target
    assert (target / "hello").read_text() == "hello"


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    """When the build raises, neither target nor partial directory stays, and the next call builds."""

    def fail(directory: Path, _progress: Progress) -> None:
        (directory / "half").write_text("half")
        raise BuildError("no")

    target = tmp_path / "target"
    with pytest.raises(BuildError, match="no"):
        build_once(target, recipe="1", build=fail, progress=print)
    assert [path.name for path in tmp_path.iterdir()] == [".target.lock"]
    build_once(target, recipe="1", build=write_hello, progress=print)
    assert (target / "hello").exists()


def test_killed_build_starts_clean(tmp_path: Path) -> None:
    """After a SIGKILL in mid-build there is no target, and the next build sees none of the leftovers."""
    target = tmp_path / "target"
    process = slow_build(target, tmp_path / "counter", 60)
    wait_for(tmp_path, ".target.partial-*/first")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    build_once(target, recipe="1", build=write_hello, progress=print)
    assert sorted(path.name for path in target.iterdir()) == ["hello", "stream-omni.json"]
    assert not list(tmp_path.glob(".target.partial-*"))


def test_concurrent_processes_build_once(tmp_path: Path) -> None:
    """Of several processes one builds, the others wait and find it whole."""
    target, counter = tmp_path / "target", tmp_path / "counter"
    processes = [slow_build(target, counter, 0.5) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0, 0]
    assert counter.read_text() == "built\n"
    assert (target / "second").read_text() == "whole"


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_damaged_target_is_built_again(tmp_path: Path, damage: str) -> None:
    """A target with a file cut short or gone is not trusted."""
    target = build_once(tmp_path / "target", recipe="1", build=write_hello, progress=print)
    if damage == "truncate":
        os.truncate(target / "hello", 1)
    else:
        (target / "hello").unlink()
    build_once(target, recipe="1", build=write_hello, progress=print)
    assert (target / "hello").read_text() == "hello"


def test_other_recipe_is_built_again(tmp_path: Path) -> None:
    """A target of an older recipe is replaced as a whole."""
    target = build_once(tmp_path / "target", recipe="1", build=write_hello, progress=print)
    build_once(target, recipe="2", build=lambda directory, _: (directory / "new").touch(), progress=print)
    assert sorted(path.name for path in target.iterdir()) == ["new", "stream-omni.json"]


def test_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    """A directory that was made by someone else is never replaced."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("mine")
    with pytest.raises(BuildError, match="was not made by stream-omni; move it away"):
        build_once(target, recipe="1", build=write_hello, progress=print)
    assert (target / "precious").read_text() == "mine"


def test_unwritable_place_is_named(tmp_path: Path) -> None:
    """Where the models' directory cannot be made, the error names it and says what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match=r"cannot write .*file/target: .*choose another directory"):
        build_once(tmp_path / "file" / "target", recipe="1", build=write_hello, progress=print)
