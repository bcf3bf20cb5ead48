"""A real PostgreSQL server: Debian's, on a Unix socket of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

_READY_SECONDS = 30


@contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """Run a server with an empty directory; it is installed first where it is missing."""
    # A socket's path must be short, and the server's user must reach it.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        server = PostgresqlServer(directory)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class PostgresqlServer:
    """One server. Its directory is filled when it is first started.

    Args:
        directory: takes its files.
    """

    def __init__(self, directory: Path) -> None:
        self._binaries = _binaries()
        self._files = directory / "files"
        self._sockets = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._files.mkdir()
        if os.geteuid() == 0:
            for path in (self._files, self._sockets):
                shutil.chown(path, "postgres", "postgres")
        options = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        self._run("initdb", *options, "-D", str(self._files))

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://postgres@/{database}?host={quote(str(self._sockets), safe='')}"

    def create(self, database: str) -> str:
        """Make an empty database and return its URL."""
        self._run("createdb", "-h", str(self._sockets), "-U", "postgres", database)
        return self.url(database)

    def start(self) -> None:
        """Start it and wait until it serves."""
        where = ["-D", str(self._files), "-k", str(self._sockets), "-c", "listen_addresses="]
        command = [*_as_user(), str(self._binaries / "postgres"), *where, "-c", "log_min_messages=fatal"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._run("pg_isready", "-h", str(self._sockets), attempts=10 * _READY_SECONDS)

    def stop(self) -> None:
        """End it at once, as a crash would; what was committed is there when it is started again."""
        if self._process is not None:
            # https://www.postgresql.org/docs/current/server-shutdown.html
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    def _run(self, program: str, *arguments: str, attempts: int = 1) -> None:
        command = [*_as_user(), str(self._binaries / program), *arguments]
        for _ in range(attempts - 1):
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        subprocess.run(command, capture_output=True, check=True)


def _as_user() -> list[str]:
    # It refuses to run as root. A child of `subprocess` with another user is forked, which gRPC's threads do not bear.
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def _binaries() -> Path:
    found = _installed()
    if found is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "postgresql"], check=True)
        found = _installed()
    assert found is not None
    return found


def _installed() -> Path | None:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None
