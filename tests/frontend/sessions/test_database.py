"""Transactions on both kinds of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import insert, select, text

from services.chassis.errors import Unavailable
from services.frontend.sessions import rows
from services.frontend.sessions.database import Database
from services.frontend.sessions.tables import sessions
from tests.frontend.sessions.examples import session


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database."""
    opened = Database(database_url)
    yield opened
    opened.close()


def add(database: Database) -> None:
    """Write a row."""
    with database.writing() as connection:
        connection.execute(insert(sessions).values(rows.session_row(session())))


def test_reading_keeps_nobody_from_writing(database: Database) -> None:
    """While one transaction reads another one writes, and what the first sees stays of one moment."""
    add(database)
    with database.reading() as reading:
        assert len(reading.execute(select(sessions.c.id)).all()) == 1
        add(database)
        assert len(reading.execute(select(sessions.c.id)).all()) == 1
    with database.reading() as reading:
        assert len(reading.execute(select(sessions.c.id)).all()) == 2


def test_what_fails_leaves_nothing(database: Database) -> None:
    """A transaction that is left with an error wrote nothing, and the database's own errors are told as its failure."""
    with pytest.raises(Unavailable) as failed, database.writing() as connection:
        connection.execute(insert(sessions).values(rows.session_row(session())))
        connection.execute(text("SELECT nothing FROM nowhere"))
    assert failed.value.reason == "SESSIONS_DATABASE"
    assert "nowhere" not in failed.value.message
    with database.reading() as reading:
        assert reading.execute(select(sessions.c.id)).all() == []


def test_durable_settings(database: Database, database_url: str) -> None:
    """A commit waits for the disk: SQLite's log is synced with each, PostgreSQL's as it does by itself."""
    with database.reading() as reading:
        if database_url.startswith("sqlite"):
            assert reading.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
            assert reading.execute(text("PRAGMA synchronous")).scalar_one() == 2
        else:
            assert reading.execute(text("SHOW synchronous_commit")).scalar_one() == "on"


def test_opened_twice_at_once(database_url: str) -> None:
    """A database that is there is opened again with what it holds."""
    first = Database(database_url)
    add(first)
    second = Database(database_url)
    with second.reading() as reading:
        assert len(reading.execute(select(sessions.c.id)).all()) == 1
    first.close()
    second.close()


def test_errors_tell_no_parameters(database: Database) -> None:
    """What fails goes to the log without what people wrote."""
    with pytest.raises(Unavailable) as failed, database.writing() as connection:
        connection.execute(text("SELECT nothing FROM nowhere WHERE it = :said"), {"said": "between us"})
    assert "nowhere" in str(failed.value.__cause__)
    assert "between us" not in str(failed.value.__cause__)
