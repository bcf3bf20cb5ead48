"""The store of sessions, on SQLite and on PostgreSQL alike: sessions and their messages."""

from __future__ import annotations

import pytest

from services.chassis.errors import NotFound, TooLarge
from services.frontend.sessions.session import Outcome, Session, StoredMessage, Traits, new_message_id
from services.frontend.sessions.sql_store import SqlSessionStore
from tests.frontend.sessions.conftest import Clock, OpenStore
from tests.frontend.sessions.examples import OWNER, message, session, take_turn

# What databases are known to trip over: NUL, quotes, wildcards of LIKE, characters outside of the first plane.
ODD = "a\0b 'c' \"d\" % _ \\ / 🦙 \u2028 ﷽ \ufffd"


@pytest.fixture
def store(open_store: OpenStore) -> SqlSessionStore:
    """A store on an empty database."""
    return open_store()


def ids(sessions: object) -> list[str]:
    """The ids of sessions or messages."""
    return [each.id for each in sessions]  # type: ignore[attr-defined]


def test_what_is_kept_comes_back(store: SqlSessionStore) -> None:
    """Every trait of a session and every field of a message is read as it was written, whatever its characters."""
    kept = session(
        title=ODD,
        model=ODD,
        system=ODD,
        context_policy="summarize",
        ttl_seconds=60,
        metadata={"k": ODD},
    )
    kept = Session(kept.id, OWNER, kept.traits, 1_000_000.0, 1_000_000.5, 1_000_060.5, head="msg_2")
    outcome = Outcome(
        "partial",
        ODD,
        ODD,
        [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\0"}'}}],
        "length",
        ODD,
        {"total_tokens": 3},
        {"ttft_ms": 1.5},
        {"policy": "sliding_window"},
        {"filter_matches": [{"rule": ODD}]},
    )
    first = StoredMessage("msg_1", None, "user", Outcome("complete", "x\ny"), 1_000_000.25, ("x", "y"), ODD, ODD)
    answer = StoredMessage("msg_2", "msg_1", "assistant", outcome, 1_000_000.5)
    store.create(kept, [first, answer])
    read = store.get(OWNER, kept.id)
    assert (read.traits, read.created_at, read.updated_at) == (kept.traits, 1_000_000.0, 1_000_000.5)
    assert (read.expires_at, read.head, read.message_count) == (1_000_060.5, "msg_2", 2)
    told, said = store.tree(OWNER, kept.id)
    assert (told.parent_id, told.role, told.outcome) == (None, "user", first.outcome)
    assert (list(told.parts or ()), told.name, told.tool_call_id) == (["x", "y"], ODD, ODD)
    assert (said.parent_id, said.outcome, said.created_at) == ("msg_1", outcome, 1_000_000.5)


def test_another_store_sees_it(open_store: OpenStore) -> None:
    """What one process has written another one reads."""
    kept = session(title="shared")
    open_store().create(kept)
    assert open_store().get(OWNER, kept.id).traits.title == "shared"


def test_owners_are_apart(store: SqlSessionStore) -> None:
    """To another owner a session does not exist, whatever is asked of it."""
    kept = session()
    taken = message("hello")
    store.create(kept, [taken])
    assert store.page("owner-2", 10, None, None).sessions == []
    for ask in (
        lambda: store.get("owner-2", kept.id),
        lambda: store.change("owner-2", kept.id, lambda traits: traits, None),
        lambda: store.delete("owner-2", kept.id),
        lambda: store.path("owner-2", kept.id, taken.id),
        lambda: store.tree("owner-2", kept.id),
        lambda: store.delete_message("owner-2", kept.id, taken.id),
        lambda: store.page("owner-2", 10, kept.id, None),
    ):
        with pytest.raises(NotFound) as refused:
            ask()
        assert refused.value.reason == "SESSION_NOT_FOUND"
    assert ids(store.tree(OWNER, kept.id)) == [taken.id]


def test_no_id_has_nul(store: SqlSessionStore) -> None:
    """An id with NUL is that of no session; the database is not taken to fail."""
    for use in (store.get, store.delete, store.tree):
        with pytest.raises(NotFound):
            use(OWNER, "sess_\0")


def test_owner_has_a_bound(open_store: OpenStore) -> None:
    """The session that is one too many is refused, for that owner alone."""
    store = open_store(max_sessions=2)
    store.create(session())
    store.create(session())
    with pytest.raises(TooLarge, match="at most 2 sessions; delete some"):
        store.create(session())
    store.create(session(owner="owner-2"))


def test_pages(store: SqlSessionStore, clock: Clock) -> None:
    """Pages put together are all sessions, each once, the last changed first."""
    made = [session(now=1_000_000.0 + number // 2) for number in range(7)]
    for each in made:
        store.create(each)
    clock.now += 100
    store.change(OWNER, made[0].id, lambda traits: traits, None)
    expected = [made[0].id, *ids(sorted(made[1:], key=lambda each: (each.updated_at, each.id), reverse=True))]
    listed: list[str] = []
    after = None
    for more in (True, True, False):
        page = store.page(OWNER, 3, after, None)
        assert page.has_more is more
        listed += ids(page.sessions)
        after = listed[-1]
    assert listed == expected


@pytest.mark.parametrize(
    "query", ["LLAMAS", "llamas eat", "straße", "STRASSE", "100%", "a_b", 'say "hi"', "back\\slash"]
)
def test_search(store: SqlSessionStore, query: str) -> None:
    """A search finds titles and texts that hold it, without regard to case, and takes wildcards as they are."""
    text = 'Llamas eat in the Straße; 100% of a_b say "hi" back\\slash'
    titled, said, other = session(title=f"On: {text}"), session(), session(title="100 of axb")
    store.create(titled)
    store.create(said, [message("first"), message(text)])
    store.create(other, [message("nothing")])
    assert set(ids(store.page(OWNER, 10, None, query).sessions)) == {titled.id, said.id}


def test_change(store: SqlSessionStore, clock: Clock) -> None:
    """Changed traits stay, the time of the change is told, and a time to live counts from it."""
    kept = session(title="old", ttl_seconds=60)
    store.create(kept)
    clock.now += 10
    changed = store.change(OWNER, kept.id, lambda traits: Traits("new", "m", ttl_seconds=traits.ttl_seconds), None)
    assert changed == store.get(OWNER, kept.id)
    assert (changed.traits.title, changed.traits.model, changed.updated_at) == ("new", "m", 1_000_010.0)
    assert changed.expires_at == 1_000_070.0
    assert store.page(OWNER, 10, None, "NEW").sessions == [changed]


def test_head_chooses_a_branch(store: SqlSessionStore) -> None:
    """Any message of the session can be made its head, and none of another one."""
    root, left, right = message("root"), message("left", "r"), message("right", "r")
    root = StoredMessage("r", None, "user", root.outcome, root.created_at)
    kept, foreign = session(), session()
    store.create(kept, [root, left, right])
    store.create(foreign, [message("x")])
    assert store.change(OWNER, kept.id, lambda traits: traits, left.id).head == left.id
    for head in (new_message_id(), store.tree(OWNER, foreign.id)[0].id):
        with pytest.raises(NotFound) as refused:
            store.change(OWNER, kept.id, lambda traits: traits, head)
        assert (refused.value.reason, refused.value.param) == ("MESSAGE_NOT_FOUND", "head")


def test_path_and_siblings(store: SqlSessionStore) -> None:
    """The path to a message leads from the root over its parents; siblings are told in order of age."""
    kept = session()
    store.create(kept)
    first = take_turn(store, kept.id, "one", "1")
    second = take_turn(store, kept.id, "two", "2", first.answer.id, first.answer.id)
    edited = take_turn(store, kept.id, "zwei", "II", first.answer.id, second.answer.id)
    path = store.path(OWNER, kept.id, edited.answer.id)
    assert [each.outcome.content for each in path] == ["one", "1", "zwei", "II"]
    assert list(path[2].siblings) == [second.messages[0].id, edited.messages[0].id]
    assert list(path[3].siblings) == [edited.answer.id]
    assert [each.outcome.content for each in store.tree(OWNER, kept.id)] == ["one", "1", "two", "2", "zwei", "II"]
    assert store.path(OWNER, kept.id, None) == []


def test_delete(store: SqlSessionStore) -> None:
    """A deleted session is gone with its messages, and so is its place in the bound and the search."""
    kept = session()
    store.create(kept, [message("hello")])
    store.delete(OWNER, kept.id)
    assert store.page(OWNER, 10, None, "hello").sessions == []
    with pytest.raises(NotFound):
        store.tree(OWNER, kept.id)
    with pytest.raises(NotFound):
        store.delete(OWNER, kept.id)


def test_delete_message(store: SqlSessionStore) -> None:
    """A message goes with all that follows it; what is beside it stays, and a head among them moves to its parent."""
    kept = session()
    store.create(kept)
    first = take_turn(store, kept.id, "one", "1")
    second = take_turn(store, kept.id, "two", "2", first.answer.id, first.answer.id)
    beside = take_turn(store, kept.id, "zwei", "II", first.answer.id, second.answer.id)
    store.delete_message(OWNER, kept.id, second.messages[0].id)
    assert [each.outcome.content for each in store.tree(OWNER, kept.id)] == ["one", "1", "zwei", "II"]
    assert store.get(OWNER, kept.id).head == beside.answer.id
    store.delete_message(OWNER, kept.id, beside.answer.id)
    assert store.get(OWNER, kept.id).head == beside.messages[0].id
    store.delete_message(OWNER, kept.id, first.messages[0].id)
    left = store.get(OWNER, kept.id)
    assert (left.head, left.message_count, left.taken_title) == (None, 0, None)
    with pytest.raises(NotFound):
        store.delete_message(OWNER, kept.id, first.messages[0].id)


def test_expiry(store: SqlSessionStore, clock: Clock) -> None:
    """A session whose time to live is over is not found from then on, and is deleted by the next sweep."""
    brief, lasting = session(ttl_seconds=60), session()
    store.create(Session(brief.id, OWNER, brief.traits, clock.now, clock.now, clock.now + 60), [message("x")])
    store.create(lasting)
    clock.now += 59
    assert store.get(OWNER, brief.id).id == brief.id
    assert store.expire() == 0
    clock.now += 2
    with pytest.raises(NotFound):
        store.get(OWNER, brief.id)
    assert ids(store.page(OWNER, 10, None, None).sessions) == [lasting.id]
    assert store.expire() == 1
    assert store.expire() == 0
    # Were it there still, its time could be turned back.
    clock.now -= 60
    with pytest.raises(NotFound):
        store.get(OWNER, brief.id)
