"""Which presets there are, and how a directory changes that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from services.chassis.errors import InvalidRequest
from services.chassis.settings import SettingsError
from services.frontend.presets.library import Presets
from tests.frontend.conftest import until
from tests.frontend.presets.preset_texts import POEM, named

SHIPPED = ["chat", "continue", "translate", "summarize", "rewrite", "code"]


def names(presets: Presets) -> list[str]:
    """The names of all presets, in order."""
    return [preset.name for preset in presets.all()]


@asynccontextmanager
async def following(presets: Presets) -> AsyncGenerator[None, None]:
    """Take over changes until the block is left."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(presets.follow())
        yield
        task.cancel()


def test_shipped() -> None:
    """The tasks that the service promises come along."""
    assert names(Presets()) == SHIPPED


def test_a_directory_adds_and_replaces(tmp_path: Path) -> None:
    """A directory's presets come after those that come along, or in the place of one of the same name; files of other
    kinds are passed over."""
    (tmp_path / "poem.toml").write_text(POEM)
    (tmp_path / "chat.toml").write_text(named("Ours"))
    (tmp_path / "README.md").write_text("no preset")
    presets = Presets(tmp_path)
    assert names(presets) == [*SHIPPED, "poem"]
    assert presets.asked("chat").title == "Ours"


def test_an_unknown_name() -> None:
    """A name that no preset has is refused with the names that there are."""
    with pytest.raises(InvalidRequest, match="allowed are chat, continue, translate") as refusal:
        Presets().asked("poem")
    assert refusal.value.param == "preset"


def test_a_broken_file_ends_the_start(tmp_path: Path) -> None:
    """A broken file, one that is too large, and a directory that is none are told in one line that names them."""
    with pytest.raises(SettingsError, match=f"{tmp_path / 'no'} cannot be read: No such file"):
        Presets(tmp_path / "no")
    (tmp_path / "poem.toml").write_text("title = 1")
    with pytest.raises(SettingsError, match=r"poem\.toml is wrong: title must be a string"):
        Presets(tmp_path)
    (tmp_path / "poem.toml").write_text("#" * 65_537)
    with pytest.raises(SettingsError, match=r"poem\.toml is wrong: it has more than 65536 bytes"):
        Presets(tmp_path)
    (tmp_path / "poem.toml").unlink()
    (tmp_path / "poem.toml").mkdir()
    with pytest.raises(SettingsError, match=r"poem\.toml cannot be read: Is a directory"):
        Presets(tmp_path)


async def test_changes_are_taken_over(tmp_path: Path) -> None:
    """A new, a changed and a removed file count within seconds; what the directory replaced is there again then."""
    (tmp_path / "chat.toml").write_text(named("Ours"))
    presets = Presets(tmp_path)
    async with following(presets):
        (tmp_path / "poem.toml").write_text(POEM)
        (tmp_path / "chat.toml").write_text(named("Changed"))
        await until(lambda: "poem" in names(presets))
        assert presets.asked("chat").title == "Changed"
        (tmp_path / "poem.toml").unlink()
        (tmp_path / "chat.toml").unlink()
        await until(lambda: names(presets) == SHIPPED)
        assert presets.asked("chat").title == "Chat"


async def test_a_file_that_becomes_broken(tmp_path: Path) -> None:
    """The preset of a file that becomes wrong stays as it was, others are taken over, and it is told once."""
    (tmp_path / "poem.toml").write_text(POEM)
    presets = Presets(tmp_path)
    with structlog.testing.capture_logs() as lines:
        async with following(presets):
            (tmp_path / "poem.toml").write_text("title =")
            (tmp_path / "also.toml").write_text("title =")
            (tmp_path / "new.toml").write_text(named("New"))
            await until(lambda: "new" in names(presets))
            assert presets.asked("poem").title == "Poem"
            assert "also" not in names(presets)
            os.utime(tmp_path / "new.toml", ns=(1, 1))
            await until(lambda: sum(line["event"] == "presets read again" for line in lines) == 2)
            assert presets.asked("poem").title == "Poem"
            (tmp_path / "poem.toml").write_text(POEM.replace("Poem", "Mended"))
            await until(lambda: presets.asked("poem").title == "Mended")
    told = [line["error"] for line in lines if line["log_level"] == "error"]
    assert len(told) == 2 and "also.toml is wrong" in told[0] and "poem.toml is wrong" in told[1]


async def test_a_link_to_nowhere(tmp_path: Path) -> None:
    """It is named, once, and other presets are taken over beside it; at the start it is an error."""
    presets = Presets(tmp_path)
    with structlog.testing.capture_logs() as lines:
        async with following(presets):
            (tmp_path / "lost.toml").symlink_to(tmp_path / "nowhere")
            (tmp_path / "poem.toml").write_text(POEM)
            await until(lambda: "poem" in names(presets))
            await asyncio.sleep(1.2)
    told = [line["error"] for line in lines if line["log_level"] == "error"]
    assert len(told) == 1 and "lost.toml cannot be read: No such file" in told[0]
    with pytest.raises(SettingsError, match=r"lost\.toml cannot be read"):
        Presets(tmp_path)


async def test_a_directory_that_goes_away(tmp_path: Path) -> None:
    """While the directory cannot be read, its presets stay, and that is told once."""
    directory = tmp_path / "presets"
    directory.mkdir()
    (directory / "poem.toml").write_text(POEM)
    presets = Presets(directory)
    with structlog.testing.capture_logs() as lines:
        async with following(presets):
            directory.rename(tmp_path / "elsewhere")
            await until(lambda: any(line["log_level"] == "error" for line in lines))
            await asyncio.sleep(1.2)
    assert names(presets) == [*SHIPPED, "poem"]
    assert sum(line["log_level"] == "error" for line in lines) == 1
