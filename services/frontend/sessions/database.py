"""The database behind a URL: SQLite or PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from services.chassis.errors import Unavailable
from services.chassis.settings import SettingsError
from services.frontend.sessions.tables import metadata

log = structlog.get_logger(__name__)

# Most connections, and threads that wait for the database; and how many of them search.
CONNECTIONS = 5
SEARCHES = 1
_READS = "streamomni_reads"
_BUSY_SECONDS = 5
_CONNECT_SECONDS = 5
_STATEMENT_MS = 10_000
# Any number that nobody else locks in this database.
_SCHEMA_LOCK = 7_310_462_091


class Database:
    """Transactions on a database whose tables are there.

    Args:
        url: `sqlite:///PATH` or `postgresql://…`.

    Raises:
        SettingsError: the URL is no such URL, or the database cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(_parsed(url))
        # All that one transaction reads is of one moment: SQLite's read so by themselves.
        isolation = {} if self._engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        self._reading = self._engine.execution_options(**{_READS: True}, **isolation)
        try:
            with self._engine.begin() as connection:
                if connection.dialect.name == "postgresql":
                    # Two processes that make the same table at one time would fail.
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
                metadata.create_all(connection)
        except (SQLAlchemyError, OSError) as error:
            self._engine.dispose()
            cause = str(getattr(error, "orig", error)).splitlines()[0]
            raise SettingsError(f"the sessions' database cannot be used: {cause}") from error

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a transaction that only reads, and keeps nobody from writing.

        Raises:
            Unavailable: the database fails.
        """
        return self._transaction(self._reading)

    def writing(self) -> AbstractContextManager[Connection]:
        """Open a transaction. It is durable once the block is left without an error.

        Raises:
            Unavailable: the database fails.
        """
        return self._transaction(self._engine)

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            log.exception("the sessions' database failed")
            raise Unavailable(
                "the sessions' database fails; try again, and see to the database if it goes on",
                reason="SESSIONS_DATABASE",
            ) from error

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _parsed(url: str) -> URL:
    # Its text may hold a password, so that no error repeats it.
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or parsed.drivername not in ("sqlite", "postgresql"):
        raise SettingsError("the sessions' URL must be sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE")
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SettingsError("the sessions' URL must name a file; write sqlite:////absolute/path/sessions.db")
    return parsed


def _engine(url: URL) -> Engine:
    if url.drivername == "postgresql":
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=CONNECTIONS,
            max_overflow=0,
            # They are what people wrote, and errors go to the log.
            hide_parameters=True,
            # A server that was started again closed them all.
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": _CONNECT_SECONDS,
                "options": f"-c statement_timeout={_STATEMENT_MS}",
                # A server that cannot be reached any more counts as lost.
                "tcp_user_timeout": _STATEMENT_MS,
            },
        )
    assert url.database is not None
    _make_private(Path(url.database))
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    # Conversations are their owners' alone. SQLite gives its other files the same rights.
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise SettingsError(
            f"the sessions' file {path} cannot be opened: {error.strerror}; choose another directory for state"
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions only with the first write, too late for what was read before it.
    connection.isolation_level = None
    cursor = connection.cursor()
    # A commit is on the disk when it returns: https://www.sqlite.org/pragma.html#pragma_synchronous
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # One that reads first and writes later would fail where another one wrote in between.
    reads = connection.get_execution_options().get(_READS, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
