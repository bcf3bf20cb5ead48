"""Turns of conversations."""

from __future__ import annotations

from hypothesis import given

from services.tokenizer.context.turns import STAYING_ROLES, texts_of, turns_of, without
from tests.tokenizer.context.histories import Message, said, wild_histories


def call(call_id: str) -> Message:
    """An assistant's message that calls a tool."""
    function = {"name": "weather", "arguments": '{"city": "Paris"}'}
    return said("assistant", "", tool_calls=[{"id": call_id, "type": "function", "function": function}])


def test_a_turn_is_a_users_message_with_what_follows() -> None:
    """System messages are part of no turn wherever they stand; what comes before the first user's is one by itself."""
    roles = ["system", "assistant", "user", "assistant", "developer", "user", "assistant", "assistant", "user"]
    assert turns_of([said(role, "x") for role in roles]) == [(1,), (2, 3), (5, 6, 7), (8,)]


def test_a_result_stays_with_its_call() -> None:
    """A call, its result and the answer after it are one turn, even with a user's message between call and result."""
    plain = [said("user", "?"), call("a"), said("tool", "sunny", tool_call_id="a"), said("assistant", "Sunny.")]
    assert turns_of([*plain, said("user", "!")]) == [(0, 1, 2, 3), (4,)]
    crossed = [said("user", "?"), call("a"), said("user", "Hurry"), said("tool", "sunny", tool_call_id="a")]
    assert turns_of([*crossed, said("user", "!")]) == [(0, 1, 2, 3), (4,)]


def test_a_result_belongs_to_the_last_call_of_its_id() -> None:
    """Models number calls anew in each turn; then a result does not tie its turn to an old one."""
    turn = [said("user", "?"), call("call-0"), said("tool", "sunny", tool_call_id="call-0")]
    assert turns_of([*turn, *turn]) == [(0, 1, 2), (3, 4, 5)]


def test_texts_are_all_that_a_template_may_show() -> None:
    """Content as text or parts, reasoning, and names and arguments of calls."""
    assert list(texts_of(call("a"))) == ["", "weather", '{"city": "Paris"}']
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert list(texts_of({"role": "assistant", "content": parts, "reasoning": "c"})) == ["a", "b", "c"]
    assert list(texts_of({"role": "assistant", "content": None})) == []


@given(wild_histories())
def test_turns_hold_each_message_once_and_tear_no_call_apart(messages: list[Message]) -> None:
    """In order, every message but the system's is in one turn; no cut separates a result from its call."""
    turns = turns_of(messages)
    held = [position for turn in turns for position in turn]
    assert held == [position for position, message in enumerate(messages) if message["role"] not in STAYING_ROLES]
    assert all(messages[turn[0]]["role"] == "user" for turn in turns[1:])
    for number in range(len(turns)):
        called: set[object] = set()
        for message in without(messages, turns[:number]):
            if message["role"] == "tool":
                assert message["tool_call_id"] in called
            calls = message.get("tool_calls", [])
            assert isinstance(calls, list)
            called.update(one["id"] for one in calls)
