"""Who may use the API: keys from a file, one a line, with names or without."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import structlog

from services.chassis.errors import Unauthenticated
from services.chassis.rereading import reread
from services.chassis.settings import SettingsError

log = structlog.get_logger(__name__)

_REASON = "INVALID_API_KEY"
MAX_KEY_CHARS = 512
# No key holds a space, so that a line is either.
_NAMED = re.compile(rb"([A-Za-z0-9._-]{1,64}): +(.*)")

RawHeaders = Iterable[tuple[bytes, bytes]]


class ApiKeys:
    """The keys that are accepted, as hashes.

    Args:
        path: file with one key a line, as `KEY` or `NAME: KEY`; empty lines and those that begin with `#` are passed
            over. Several keys may have one name. Output filters know callers by it.

    Raises:
        SettingsError: the file cannot be read, holds no key or a line that is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Names by the keys' hashes; empty for a key without one.
        self._names = _read(path)

    def check(self, headers: RawHeaders) -> str:
        """Return the name of the accepted key that a request's headers hold, as `Authorization: Bearer KEY` (RFC 6750).

        The time that it takes does not depend on the accepted keys.

        Raises:
            Unauthenticated: they do not. What was sent is not in its text.
        """
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1:
            told = "no API key was sent" if not given else "authorization was sent more than once"
            raise _refused(told)
        scheme, _, key = given[0].partition(b" ")
        if scheme.lower() != b"bearer":
            raise _refused("the authorization sent is no bearer token")
        digest = _digest(key.strip(b" "))
        # Every digest is compared, so that the time does not tell which one was near.
        if not sum(hmac.compare_digest(digest, accepted) for accepted in self._names):
            raise _refused("the API key sent is not accepted")
        return self._names[digest]

    async def follow(self) -> None:
        """Take over changes of the file until cancelled; while it is wrong, the keys stay as they were."""
        await reread(
            self._take_over, lambda wrong: log.error("API keys not read again; those read before stay", error=wrong)
        )

    async def _take_over(self) -> None:
        names = await asyncio.to_thread(_read, self._path)
        if names != self._names:
            self._names = names
            log.info("API keys read again", keys=len(names))


def owner_of(headers: RawHeaders) -> str:
    """Return what tells the key of an accepted request from others, and is no key: 16 hex digits of its SHA-256."""
    value = next(value for name, value in headers if name == b"authorization")
    return _digest(value.partition(b" ")[2].strip(b" ")).hex()[:16]


def _refused(told: str) -> Unauthenticated:
    return Unauthenticated(f"{told}; send one of this service's keys as Authorization: Bearer KEY", reason=_REASON)


def _read(path: Path) -> Mapping[bytes, str]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SettingsError(f"API keys file {path} cannot be read: {error.strerror}") from error
    names: dict[bytes, str] = {}
    for number, line in enumerate(lines, 1):
        key = line.strip()
        if not key or key.startswith(b"#"):
            continue
        name = ""
        if named := _NAMED.fullmatch(key):
            name, key = named[1].decode(), named[2]
        # The line itself may be a key, so its text is not told.
        if len(key) > MAX_KEY_CHARS or not all(0x21 <= byte <= 0x7E for byte in key):
            raise SettingsError(
                f"line {number} of API keys file {path} is no key: 1 to {MAX_KEY_CHARS} visible ASCII characters"
                " without a space, alone or as NAME: KEY; comments have lines of their own, which begin with #"
            )
        if names.setdefault(_digest(key), name) != name:
            raise SettingsError(f"line {number} of API keys file {path} repeats a key under another name; remove one")
    if not names:
        raise SettingsError(f"API keys file {path} holds no key; write one a line, or unset it to serve anyone")
    return names


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
