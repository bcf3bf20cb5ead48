"""The store of sessions, on SQLite and on PostgreSQL alike: turns and their leases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from services.chassis.errors import Conflict, NotFound, TooLarge
from services.frontend.sessions.port import LEASE_SECONDS
from services.frontend.sessions.session import (
    MAX_SESSION_BYTES,
    MAX_SESSION_MESSAGES,
    MAX_SIBLINGS,
    Outcome,
    Session,
    Summary,
    Traits,
)
from services.frontend.sessions.sql_store import SqlSessionStore
from tests.frontend.sessions.conftest import Clock, OpenStore
from tests.frontend.sessions.examples import OWNER, message, session, take_turn, turn

_LONG = "x" * MAX_SESSION_BYTES


@pytest.fixture
def store(open_store: OpenStore) -> SqlSessionStore:
    """A store on an empty database."""
    return open_store()


@pytest.fixture
def kept(store: SqlSessionStore) -> Session:
    """A session without messages."""
    made = session()
    store.create(made)
    return made


def statuses(store: SqlSessionStore, kept: Session) -> list[str]:
    """The states of all messages of a session."""
    return [each.outcome.status for each in store.tree(OWNER, kept.id)]


def test_turn(store: SqlSessionStore, kept: Session, clock: Clock) -> None:
    """A turn keeps the messages when it begins, the answer when it ends, and titles the session by its first words."""
    taken = turn(kept.id, "  What is\nthe capital?  " + "x" * 100)
    clock.now += 1
    store.begin_turn(OWNER, taken)
    begun = store.get(OWNER, kept.id)
    assert (begun.head, begun.message_count, begun.busy, begun.updated_at) == (taken.answer.id, 2, True, clock.now)
    assert begun.taken_title == "What is the capital? " + "x" * 39
    assert statuses(store, kept) == ["complete", "running"]
    store.finish_turn(taken, Outcome("complete", "Paris", finish_reason="stop"), None)
    ended = store.get(OWNER, kept.id)
    assert (ended.head, ended.busy) == (taken.answer.id, False)
    assert [each.outcome.content for each in store.path(OWNER, kept.id, ended.head)][1:] == ["Paris"]
    assert store.page(OWNER, 10, None, "paris").sessions == [ended]


def test_one_of_two_turns(open_store: OpenStore, kept: Session) -> None:
    """While a turn is under way another one is refused, in another process too; afterwards it is taken."""
    store, other = open_store(), open_store()
    taken = turn(kept.id, "one")
    store.begin_turn(OWNER, taken)
    for begins in (store, other):
        with pytest.raises(Conflict) as refused:
            begins.begin_turn(OWNER, turn(kept.id, "two"))
        assert refused.value.reason == "SESSION_BUSY"
    store.finish_turn(taken, Outcome("complete", "1"), None)
    with pytest.raises(Conflict):
        # It was planned when the session was empty.
        other.begin_turn(OWNER, turn(kept.id, "two"))
    take_turn(other, kept.id, "two", "2", taken.answer.id, taken.answer.id)


def test_turns_at_the_same_time(open_store: OpenStore, kept: Session) -> None:
    """Of turns that begin at the very same time, over several connections, exactly one does."""
    stores = [open_store() for _ in range(4)]
    together = threading.Barrier(len(stores))

    def begin(store: SqlSessionStore) -> bool:
        together.wait()
        try:
            store.begin_turn(OWNER, turn(kept.id, "now"))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(len(stores)) as threads:
        assert sorted(threads.map(begin, stores)) == [False, False, False, True]


def test_lease_of_a_dead_process(open_store: OpenStore, kept: Session, clock: Clock) -> None:
    """A turn that is no longer renewed ends by itself: its answer is partial and the session free within seconds."""
    dead, living = open_store(), open_store()
    taken = turn(kept.id, "one")
    dead.begin_turn(OWNER, taken)
    assert dead.renew([(taken, Outcome("running", "so f"))]) == []
    clock.now += LEASE_SECONDS + 0.1
    assert living.get(OWNER, kept.id).busy is False
    assert statuses(living, kept) == ["complete", "partial"]
    assert living.path(OWNER, kept.id, taken.answer.id)[1].outcome.content == "so f"
    take_turn(living, kept.id, "two", "2", taken.answer.id, taken.answer.id)
    assert statuses(living, kept) == ["complete", "partial", "complete", "complete"]
    # Had it only slept, it would learn that it has lost the session, and its answer would be kept all the same.
    assert dead.renew([(taken, Outcome("running", "so far"))]) == [taken.holder]
    dead.finish_turn(taken, Outcome("complete", "so far so good"), None)
    assert living.path(OWNER, kept.id, taken.answer.id)[1].outcome.content == "so far so good"


def test_renewed_lease(store: SqlSessionStore, kept: Session, clock: Clock) -> None:
    """A turn that is renewed in time holds its session, several turns by one call."""
    other = session()
    store.create(other)
    turns = [turn(kept.id, "one"), turn(other.id, "two")]
    for each in turns:
        store.begin_turn(OWNER, each)
    for _ in range(3):
        clock.now += LEASE_SECONDS - 1
        assert store.renew([(each, Outcome("running")) for each in turns]) == []
        assert store.get(OWNER, kept.id).busy and store.get(OWNER, other.id).busy


def test_deleted_during_a_turn(store: SqlSessionStore, kept: Session) -> None:
    """A session can be deleted while a turn is under way: the turn learns of it, and nothing comes back."""
    taken = turn(kept.id, "one")
    store.begin_turn(OWNER, taken)
    store.delete(OWNER, kept.id)
    assert store.renew([(taken, Outcome("running"))]) == [taken.holder]
    with pytest.raises(NotFound, match="was deleted while the answer was written"):
        store.finish_turn(taken, Outcome("complete", "1"), None)
    store.abandon_turn(taken)
    with pytest.raises(NotFound):
        store.get(OWNER, kept.id)


def test_changes_during_a_turn(store: SqlSessionStore, kept: Session) -> None:
    """While a turn is under way the title may change, but neither messages nor the head."""
    first = take_turn(store, kept.id, "one", "1")
    store.begin_turn(OWNER, turn(kept.id, "two", parent_id=first.answer.id, head=first.answer.id))
    assert store.change(OWNER, kept.id, lambda _: Traits("new"), None).traits.title == "new"
    with pytest.raises(Conflict):
        store.change(OWNER, kept.id, lambda traits: traits, first.answer.id)
    with pytest.raises(Conflict):
        store.delete_message(OWNER, kept.id, first.answer.id)


def test_abandoned_turn(store: SqlSessionStore, kept: Session) -> None:
    """A turn that is taken back leaves the session as it was before."""
    refused = turn(kept.id, "never", "answered")
    store.begin_turn(OWNER, refused)
    store.abandon_turn(refused)
    assert replace(store.get(OWNER, kept.id), updated_at=kept.updated_at) == kept
    first = take_turn(store, kept.id, "one", "1")
    again = turn(kept.id, "never", parent_id=first.answer.id, head=first.answer.id)
    store.begin_turn(OWNER, again)
    store.abandon_turn(again)
    left = store.get(OWNER, kept.id)
    assert (left.head, left.message_count, left.busy, left.taken_title) == (first.answer.id, 2, False, "one")


def test_variants(store: SqlSessionStore, kept: Session) -> None:
    """A turn without new messages gives another answer to the message that it follows."""
    first = take_turn(store, kept.id, "one", "1")
    asked = first.messages[0].id
    again = turn(kept.id, parent_id=asked, head=first.answer.id)
    store.begin_turn(OWNER, again)
    store.finish_turn(again, Outcome("complete", "I"), None)
    path = store.path(OWNER, kept.id, store.get(OWNER, kept.id).head)
    assert [each.outcome.content for each in path] == ["one", "I"]
    assert list(path[1].siblings) == [first.answer.id, again.answer.id]


def test_parent_that_is_gone(store: SqlSessionStore, kept: Session) -> None:
    """A turn cannot follow a message that is not there."""
    with pytest.raises(NotFound) as refused:
        store.begin_turn(OWNER, turn(kept.id, "one", parent_id="msg_unknown"))
    assert (refused.value.reason, refused.value.param) == ("MESSAGE_NOT_FOUND", "parent_message_id")
    assert store.get(OWNER, kept.id).message_count == 0


def test_too_many_messages(store: SqlSessionStore) -> None:
    """A turn whose messages would be one too many is refused whole; one that just fits is taken."""
    nearly = session()
    chain = [message("x")]
    while len(chain) < MAX_SESSION_MESSAGES - 2:
        chain.append(message("x", chain[-1].id))
    store.create(nearly, chain)
    with pytest.raises(TooLarge, match=f"at most {MAX_SESSION_MESSAGES} messages"):
        store.begin_turn(OWNER, turn(nearly.id, "one", "two", parent_id=chain[-1].id))
    assert store.get(OWNER, nearly.id).busy is False
    store.begin_turn(OWNER, turn(nearly.id, "one", parent_id=chain[-1].id))


def test_too_many_siblings(store: SqlSessionStore) -> None:
    """A message that has all the messages after it that it may have gets no more; elsewhere the session goes on."""
    wide = session()
    parent = message("x")
    store.create(wide, [parent, *(message("y", parent.id, "assistant") for _ in range(MAX_SIBLINGS))])
    with pytest.raises(TooLarge, match=f"at most {MAX_SIBLINGS} messages after one"):
        store.begin_turn(OWNER, turn(wide.id, parent_id=parent.id))
    store.begin_turn(OWNER, turn(wide.id, "one"))


def test_too_long_messages(store: SqlSessionStore, kept: Session) -> None:
    """The bound counts bytes, over all messages, and what is deleted no longer counts."""
    half = "é" * (MAX_SESSION_BYTES // 4)
    first = take_turn(store, kept.id, half, half)
    with pytest.raises(TooLarge, match=f"at most {MAX_SESSION_BYTES} bytes"):
        store.begin_turn(OWNER, turn(kept.id, "x", parent_id=first.answer.id, head=first.answer.id))
    store.delete_message(OWNER, kept.id, first.answer.id)
    store.begin_turn(OWNER, turn(kept.id, "x", parent_id=first.messages[0].id, head=first.messages[0].id))


@pytest.mark.parametrize(
    "more", [{"name": _LONG}, {"tool_call_id": _LONG}, {"parts": [_LONG]}], ids=["name", "tool_call_id", "parts"]
)
def test_all_of_a_message_counts(store: SqlSessionStore, kept: Session, more: dict[str, Any]) -> None:
    """What a message has beside its text counts too: each turn reads all of it."""
    begun = turn(kept.id, "one")
    heavy = message("one", **more)
    with pytest.raises(TooLarge, match=f"at most {MAX_SESSION_BYTES} bytes"):
        store.begin_turn(OWNER, replace(begun, messages=[heavy]))
    assert store.get(OWNER, kept.id).message_count == 0


def test_summary(store: SqlSessionStore, kept: Session) -> None:
    """A summary stays with the session until a message that it holds is deleted."""
    first = take_turn(store, kept.id, "one", "1")
    second = turn(kept.id, "two", parent_id=first.answer.id, head=first.answer.id)
    store.begin_turn(OWNER, second)
    store.finish_turn(second, Outcome("complete", "2"), Summary("they counted", first.answer.id))
    summed = store.get(OWNER, kept.id)
    assert (summed.summary, summed.summary_upto) == ("they counted", first.answer.id)
    store.delete_message(OWNER, kept.id, second.answer.id)
    assert store.get(OWNER, kept.id).summary == "they counted"
    store.delete_message(OWNER, kept.id, first.answer.id)
    assert store.get(OWNER, kept.id).summary is None


def test_no_expiry_during_a_turn(store: SqlSessionStore, clock: Clock) -> None:
    """A session does not expire under a turn that outlives its time to live, and its end begins that time anew."""
    brief = session(ttl_seconds=2)
    store.create(brief)
    taken = turn(brief.id, "one")
    store.begin_turn(OWNER, taken)
    clock.now += 5
    assert store.expire() == 0
    store.finish_turn(taken, Outcome("complete", "1"), None)
    assert store.get(OWNER, brief.id).expires_at == clock.now + 2
