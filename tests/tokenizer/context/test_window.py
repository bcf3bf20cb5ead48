"""The window: what is kept of a conversation that is too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.turns import turns_of, without
from services.tokenizer.context.window import (
    MOST_ANSWER_TOKENS,
    answer_room,
    drop_points,
    fitted,
    quantum,
)
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.segment import Segment
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf
from tests.tokenizer.context.histories import Message, chat_of, histories, is_a_cut, said, tokens

FAMILIES = [SMOLLM2, "qwen3", "llama3_1", "mistral_nemo", "deepseek_v3", "gemma3"]


class Counted(TextTokenizer):
    """Counts how often a chat is encoded."""

    encoded = 0

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Count, then encode."""
        self.encoded += 1
        return super().encode_segments(segments)


@pytest.fixture(scope="module")
def counted(files_of: FilesOf) -> Counted:
    """The default model's tokenizer."""
    return Counted(files_of(SMOLLM2))


def test_room_for_the_answer() -> None:
    """What the request says, else a quarter of the context and at most 4096 tokens; never nothing."""
    assert answer_room(2048, 100) == 100
    assert answer_room(2048, 1_000_000) == 1_000_000
    assert answer_room(2048, None) == 512
    assert answer_room(131072, None) == MOST_ANSWER_TOKENS == 4096
    assert answer_room(2, None) == 1


@given(st.lists(st.integers(0, 50), max_size=40), st.sampled_from([1, 2, 8, 32, 128]))
def test_points_follow_from_the_beginning(counts: list[int], size: int) -> None:
    """Points ascend to all turns, and a turn more at the end takes away only points behind the last quantum."""
    points = drop_points(counts, size)
    assert points == sorted(set(points))
    assert (points[-1] if counts else 0) == len(counts)
    longer = drop_points([*counts, 7], size)
    fixed = [point for point in points if sum(counts[:point]) // size > sum(counts[: point - 1]) // size]
    assert [point for point in longer if point in fixed] == fixed
    assert all(sum(counts[one - 1 : two]) >= size for one, two in pairwise(fixed)) or size == 1


@given(st.integers(-5, 10**6))
def test_the_quantum_is_a_coarse_quarter(room: int) -> None:
    """It is a quarter of the room at most, four fifths of that at least, and one where there is no room."""
    size = quantum(room)
    most = max(1, room // 4)
    assert most * 4 / 5 <= size <= most


def test_quanta_are_few() -> None:
    """A room a tenth larger has the same quantum as often as not."""
    assert len({quantum(number) for number in range(1000, 100_000)}) < 40


def holds_for(tokenizer: TextTokenizer) -> None:
    """Run the property for one model."""

    @settings(max_examples=40, deadline=None)
    @given(histories(), st.data())
    def holds(messages: list[Message], data: st.DataObject) -> None:
        whole = tokens(messages, tokenizer)
        turns = turns_of(messages)
        least = tokens(without(messages, turns[:-1]), tokenizer)
        limit = data.draw(st.integers(least - 1, whole + 1))
        if limit < least:
            with pytest.raises(InvalidRequest, match=f"the last turn alone have {least} tokens") as caught:
                fitted(chat_of(messages), tokenizer, limit)
            assert (caught.value.reason, caught.value.param) == ("CONTEXT_LENGTH_EXCEEDED", "prompt")
            assert f"the context leaves {limit} tokens" in str(caught.value)
            return

        window = fitted(chat_of(messages), tokenizer, limit)

        kept = window.chat.messages
        assert window.token_ids == chat_of(kept).token_ids(tokenizer)
        assert len(window.token_ids) <= limit
        assert is_a_cut(kept, messages)
        assert list(window.dropped) == turns[: len(window.dropped)]
        assert window.dropped_tokens == whole - len(window.token_ids)
        # The last point before the one that was taken leaves too much; within a quantum the points are fixed.
        if window.dropped:
            assert whole > limit
            before = _point_before(messages, limit, tokenizer, len(window.dropped))
            assert tokens(without(messages, turns[:before]), tokenizer) > limit

    holds()


def _point_before(messages: list[Message], limit: int, tokenizer: TextTokenizer, dropped: int) -> int:
    """The last point before `dropped` turns, counted here once more from the messages alone."""
    turns = turns_of(messages)

    def count(message: Message) -> int:
        return len(tokenizer.encode(str(message["content"]), False)) + 4

    room = limit - sum(count(message) for message in messages if message["role"] == "system")
    counts = [sum(count(messages[position]) for position in turn) for turn in turns[:-1]]
    return max([0, *(point for point in drop_points(counts, quantum(room)) if point < dropped)])


@pytest.mark.parametrize("name", FAMILIES)
def test_windows_of_models(name: str, tokenizer_of: TokenizerOf) -> None:
    """With real templates and tokenizers: what is kept fits, is the system message and whole turns to the end, and the
    point before would not fit; what cannot fit is refused with both figures."""
    holds_for(tokenizer_of(name))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_beginning_stays_the_same_for_several_turns(name: str, tokenizer_of: TokenizerOf) -> None:
    """A caller that sends its whole history finds the same beginning kept until the conversation has grown by a
    quantum, and the next prompt goes on from the last; nothing comes back that was left out."""
    tokenizer = tokenizer_of(name)
    messages: list[Message] = [said("system", "Answer in one word.")]
    windows = []
    for number in range(90):
        messages.append(said("user", f"What is the capital of country number {number}, please?"))
        windows.append(fitted(chat_of(messages), tokenizer, 1000))
        messages.append(said("assistant", f"The capital of country number {number} is town {number}."))
    drops = [len(window.dropped) for window in windows]
    assert drops == sorted(drops)
    moves = [number for number, (one, two) in enumerate(pairwise(drops)) if one != two]
    assert 3 <= len(moves) <= (90 - moves[0]) / 5
    for one, two in pairwise(windows):
        if len(one.dropped) == len(two.dropped):
            assert list(two.chat.messages[: len(one.chat.messages)]) == list(one.chat.messages)


def test_a_little_more_room_moves_nothing(tokenizer_of: TokenizerOf) -> None:
    """Requests that leave a little more or less room for their answers have the same points."""
    tokenizer = tokenizer_of(SMOLLM2)
    messages = [said(role, f"word {number} " * 10) for number in range(30) for role in ("user", "assistant")]
    messages.append(said("user", "Well?"))
    kept = {len(fitted(chat_of(messages), tokenizer, limit).dropped) for limit in range(700, 720)}
    assert len(kept) == 1


def test_a_long_history_is_rendered_a_few_times(counted: Counted) -> None:
    """2048 messages that are thirty times too long take a dozen renderings, not one for each turn."""
    counted.encoded = 0
    messages = [said(("user", "assistant")[number % 2], f"message {number} " * 10) for number in range(2047)]
    window = fitted(chat_of(messages), counted, 2000)
    assert 1000 < len(window.token_ids) <= 2000
    assert counted.encoded <= 12
    assert window.dropped_tokens > 50_000


def test_a_hopeless_beginning_is_not_rendered(counted: Counted) -> None:
    """Of a history a thousand times too long only ends that may fit are encoded; what is left out is counted."""
    counted.encoded = 0
    messages = [said(("user", "assistant")[number % 2], "word " * 4000) for number in range(100)]
    messages += [said("user", "short"), said("assistant", "short"), said("user", "Well?")]
    window = fitted(chat_of(messages), counted, 100)
    assert [message["content"] for message in window.chat.messages] == ["short", "short", "Well?"]
    assert 400_000 < window.dropped_tokens < 402_000
    assert counted.encoded <= 8


def test_open_ends_stay_open(tokenizer_of: TokenizerOf) -> None:
    """An answer that is to be gone on with is part of the last turn, and the prompt still ends inside it."""
    tokenizer = tokenizer_of(SMOLLM2)
    messages = [said("user", "x " * 50), said("assistant", "y"), said("user", "Count"), said("assistant", "One, two,")]
    chat = replace(chat_of(messages), add_generation_prompt=False, continue_final_message=True)
    window = fitted(chat, tokenizer, 60)
    assert len(window.dropped) == 1
    assert tokenizer.decode(window.token_ids).endswith("One, two,")


def test_no_user_and_no_room(tokenizer_of: TokenizerOf) -> None:
    """Without a user's message everything stays, and a limit that nothing meets is told as nought."""
    chat: ChatPrompt = chat_of([said("system", "a"), said("assistant", "b")])
    assert not fitted(chat, tokenizer_of(SMOLLM2), 100).dropped
    with pytest.raises(InvalidRequest, match="leaves 0 tokens"):
        fitted(chat, tokenizer_of(SMOLLM2), -50)
