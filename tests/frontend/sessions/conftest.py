"""A frontend that keeps sessions, and databases for them: an SQLite file, and a PostgreSQL server's."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from services.frontend.sessions.sql_store import SqlSessionStore
from tests.frontend.conftest import Frontend, Starter
from tests.postgresql import PostgresqlServer, running_postgresql

# Makes a store on the test's database: each call gives another one, as each process has its own.
OpenStore = Callable[..., SqlSessionStore]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Return Unix time in seconds."""
        return self.now


@pytest.fixture
async def frontend(start: Starter, tmp_path: Path) -> Frontend:
    """A frontend that keeps sessions."""
    return await start(state_dir=tmp_path / "state")


@pytest.fixture
async def client(frontend: Frontend) -> httpx.AsyncClient:
    """Its client."""
    return frontend.client


@pytest.fixture(scope="package")
def postgresql() -> Iterator[PostgresqlServer]:
    """A running PostgreSQL server."""
    with running_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'sessions.db'}"
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return server.create(f"test_{uuid.uuid4().hex}")


@pytest.fixture
def clock() -> Clock:
    """The stores' clock."""
    return Clock()


@pytest.fixture
def open_store(database_url: str, clock: Clock) -> Iterator[OpenStore]:
    """Opens stores on one database."""
    opened: list[SqlSessionStore] = []

    def open_one(max_sessions: int = 100) -> SqlSessionStore:
        opened.append(SqlSessionStore(database_url, clock, max_sessions))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()
