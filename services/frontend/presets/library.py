"""The presets that are served: those that come along, and a directory's, which add to them or replace them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import structlog

from services.chassis.errors import InvalidRequest, NotFound
from services.chassis.rereading import reread
from services.chassis.settings import SettingsError
from services.frontend.presets.preset import Preset
from services.frontend.presets.preset_file import PresetError, parse_preset

log = structlog.get_logger(__name__)

_ENDING = ".toml"
_MAX_FILES = 256
_MAX_FILE_BYTES = 64 * 1024

# What tells that a file has changed: time of its last change in ns, and size.
_Version = tuple[int, int]


class Presets:
    """All presets by name.

    Args:
        directory: `NAME.toml` in it are presets too and go before those that come along; None: there are none.

    Raises:
        SettingsError: the directory cannot be read, or a file in it is no preset.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._shipped = _read_shipped()
        self._own: Mapping[str, Preset] = {}
        self._versions: Mapping[str, _Version] = {}
        if directory is not None:
            self._versions = _list(directory)
            self._own = {name: _read(directory, name) for name in self._versions}

    def all(self) -> list[Preset]:
        """Return all presets: those that come along in their order, then others by name."""
        own = self._own
        others = sorted(name for name in own if name not in self._shipped)
        return [own.get(name, preset) for name, preset in self._shipped.items()] + [own[name] for name in others]

    def find(self, name: str) -> Preset | None:
        """Return the preset of a name, if there is one."""
        return self._own.get(name) or self._shipped.get(name)

    def asked(self, name: str) -> Preset:
        """Return the preset that a request asks for.

        Raises:
            InvalidRequest: there is none of this name.
        """
        if (preset := self.find(name)) is None:
            raise InvalidRequest(f"there is no preset of this name; allowed are {self._names()}", param="preset")
        return preset

    def named(self, name: str) -> Preset:
        """Return the preset of a path.

        Raises:
            NotFound: there is none of this name.
        """
        if (preset := self.find(name)) is None:
            raise NotFound(
                "there is no preset of this name; GET /v1/presets lists the names", reason="PRESET_NOT_FOUND"
            )
        return preset

    async def follow(self) -> None:
        """Take over changes of the directory until cancelled.

        A preset whose file is wrong stays as it was, which is logged once for each version of the file.
        """
        directory = self._directory
        if directory is None:
            return

        async def take_over() -> None:
            versions = await asyncio.to_thread(_list, directory)
            if versions != self._versions:
                await asyncio.to_thread(self._take_over, directory, versions)

        await reread(take_over, lambda wrong: log.error("presets not read again; those read before stay", error=wrong))

    def _take_over(self, directory: Path, versions: Mapping[str, _Version]) -> None:
        own: dict[str, Preset] = {}
        for name, version in versions.items():
            before = self._own.get(name)
            if version == self._versions.get(name):
                if before is not None:
                    own[name] = before
                continue
            try:
                own[name] = _read(directory, name)
            except SettingsError as error:
                log.error("preset not read again; the one read before stays", error=str(error))
                if before is not None:
                    own[name] = before
        self._own, self._versions = own, versions
        log.info("presets read again", own=len(own))

    def _names(self) -> str:
        return ", ".join(preset.name for preset in self.all())


def _read_shipped() -> Mapping[str, Preset]:
    names = ("chat", "continue", "translate", "summarize", "rewrite", "code")
    folder = files("services.frontend.presets").joinpath("shipped")
    return {name: parse_preset(name, folder.joinpath(name + _ENDING).read_bytes()) for name in names}


def _list(directory: Path) -> Mapping[str, _Version]:
    """Return the versions of a directory's files by their presets' names, in order of name."""
    try:
        found = sorted(path for path in directory.iterdir() if path.name.endswith(_ENDING))
    except OSError as error:
        raise SettingsError(f"presets directory {directory} cannot be read: {error.strerror}") from error
    if len(found) > _MAX_FILES:
        raise SettingsError(f"presets directory {directory} has {len(found)} presets; at most {_MAX_FILES} are allowed")
    return {path.name.removesuffix(_ENDING): _version(path) for path in found}


def _version(path: Path) -> _Version:
    try:
        stat = path.stat()
    except OSError:
        # A link to nowhere, for example. Reading it tells which file it is.
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


def _read(directory: Path, name: str) -> Preset:
    path = directory / (name + _ENDING)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"preset {path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise SettingsError(f"preset {path} is wrong: it has more than {_MAX_FILE_BYTES} bytes")
    try:
        return parse_preset(name, content)
    except PresetError as error:
        raise SettingsError(f"preset {path} is wrong: {error}") from None
