"""The prompt that asks for a summary, and the summary's place in a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.context.summary_prompt import Summarizing, summary_frame, summary_room, with_summary
from services.tokenizer.context.turns import turns_of
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.context.histories import Message, chat_of, histories, said
from tests.tokenizer.context.test_window import FAMILIES


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's."""
    return tokenizer_of(SMOLLM2)


def material(messages: list[Message]) -> list[list[Message]]:
    """The turns as messages."""
    return [[messages[position] for position in turn] for turn in turns_of(messages)]


def test_room_for_a_summary() -> None:
    """An eighth of the prompt, at most 256 tokens, and never so few that nothing can be said."""
    assert [summary_room(limit) for limit in (-5, 100, 800, 100_000)] == [16, 16, 100, 256]


def test_a_summary_is_part_of_the_system_message(tokenizer: TextTokenizer) -> None:
    """It stands at the end of the first system or developer message, else in one of its own; text or parts."""
    user = said("user", "Hi")
    for role in ("system", "developer"):
        told = with_summary(chat_of([said(role, "Be brief."), user]), "They met.", tokenizer).messages
        assert told == [
            said(role, "Be brief.\n\nSummary of the earlier part of this conversation:\nThey met."),
            user,
        ]
    (first, second) = with_summary(chat_of([user]), "They met.", tokenizer).messages
    assert (first["role"], second) == ("system", user)
    parts = [{"type": "text", "text": "Be brief."}]
    (first, _) = with_summary(chat_of([{"role": "system", "content": parts}, user]), "They met.", tokenizer).messages
    assert isinstance(first["content"], list)
    assert [part["text"][-9:] for part in first["content"]] == ["Be brief.", "They met."]
    assert with_summary(chat_of([user]), "", tokenizer).messages == [user]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_summary_is_in_the_prompt_of_every_model(name: str, tokenizer_of: TokenizerOf) -> None:
    """Once, before the turns or beside the last user's text, and within the tokens that are reserved for it."""
    tokenizer = tokenizer_of(name)
    chat = chat_of([said("user", "Hi"), said("assistant", "Hello"), said("user", "Well?")])
    summary = "Ada wants to learn how to sail; she lives in Nantes."
    plain, told = (one.token_ids(tokenizer) for one in (chat, with_summary(chat, summary, tokenizer)))
    assert tokenizer.decode(told).count(summary) == 1
    assert len(told) <= len(plain) + summary_frame(tokenizer) + len(tokenizer.encode(summary, False))


def test_a_template_without_system_messages(tokenizer_of: TokenizerOf) -> None:
    """Where the template refuses system messages, the summary goes before the first user's text."""
    tokenizer = tokenizer_of("mistral_nemo")
    # This template takes a system message at the very beginning alone, so one in mid-conversation is refused for good.
    chat = chat_of([said("user", "Hi"), said("assistant", "Hello"), said("user", "Well?")])
    assert with_summary(chat, "They met.", tokenizer).messages[0]["role"] == "system"
    alternating = chat_of([said("assistant", "Hello"), said("user", "Well?")])
    told = with_summary(alternating, "They met.", tokenizer).messages
    assert [message["role"] for message in told] == ["assistant", "user"]
    assert told[1]["content"] == "Summary of the earlier part of this conversation:\nThey met.\n\nWell?"


@pytest.mark.parametrize("name", FAMILIES)
def test_questions_hold_all_turns_in_order(name: str, tokenizer_of: TokenizerOf) -> None:
    """With real templates: each question fits, they hold every turn once and in order, and the next cannot hold less;
    what is cut is told."""
    tokenizer = tokenizer_of(name)

    @settings(max_examples=15, deadline=None)
    @given(histories(), st.integers(40, 400))
    def holds(messages: list[Message], room: int) -> None:
        turns = material(messages)[:-1]
        chat = chat_of(messages)
        overhead = Summarizing(chat, tokenizer, 0, 10).overhead("Sum.")
        asking = Summarizing(chat, tokenizer, overhead + room, 10)
        while turns:
            question = asking.next_question(turns, "Sum.", last=False)
            assert question is not None
            assert len(question.token_ids) <= overhead + room
            assert 1 <= question.turns <= len(turns)
            text = tokenizer.decode(question.token_ids)
            assert "Summarize our conversation" in text
            assert "Sum." in text
            if question.unsummarized:
                assert (question.turns, question.unsummarized) == (1, len(turns[0]))
            turns = turns[question.turns :]

    holds()


def test_the_last_question_passes_over_the_oldest(tokenizer: TextTokenizer) -> None:
    """Where all that is left must fit into one question, the newest turns are in it and the others are counted."""
    messages = [said(role, f"number {turn} " * 20) for turn in range(10) for role in ("user", "assistant")]
    chat = chat_of(messages)
    question = Summarizing(chat, tokenizer, 500, 10).next_question(material(messages), "", last=True)
    assert question is not None
    text = tokenizer.decode(question.token_ids)
    assert "number 9" in text and "number 0" not in text
    left_out = [turn for turn in range(10) if f"number {turn} " not in text]
    assert (question.turns, question.unsummarized) == (10, 2 * len(left_out))
    assert left_out == list(range(len(left_out)))


def test_a_turn_that_is_too_long_is_cut(tokenizer: TextTokenizer) -> None:
    """The beginnings of its messages are asked about, and it counts as held in part; without room for anything there
    is no question."""
    turn = [
        said("user", "begin " + "word " * 2000 + "end"),
        {"role": "assistant", "content": [{"type": "text", "text": "x " * 900}]},
    ]
    asking = Summarizing(chat_of(turn), tokenizer, 600, 10)
    for last in (False, True):
        question = asking.next_question([turn], "", last=last)
        assert question is not None
        text = tokenizer.decode(question.token_ids)
        assert 500 < len(question.token_ids) <= 600
        assert "begin word" in text and "[…]" in text and "end\n" not in text
        assert (question.turns, question.unsummarized) == (1, 2)
    assert Summarizing(chat_of(turn), tokenizer, 20, 10).next_question([turn], "", last=False) is None


def test_the_newest_turns_are_asked_about(tokenizer: TextTokenizer) -> None:
    """What needs more questions than are allowed is passed over from the oldest on; one turn is always left."""
    messages = [said(role, "word " * 200) for _ in range(20) for role in ("user", "assistant")]
    asking = Summarizing.of(chat_of(messages), tokenizer, 1100, 100)
    skipped = asking.newest(material(messages), "", 4)
    assert 10 <= skipped <= 14
    questions, turns = 0, material(messages)[skipped:]
    while turns:
        question = asking.next_question(turns, "", last=False)
        assert question is not None
        questions, turns = questions + 1, turns[question.turns :]
    assert questions <= 4
    assert asking.newest(material(messages), "", 1000) == 0
    assert asking.newest([[said("user", "word " * 9000)]], "", 1) == 0


def test_tools_and_thinking_are_left_out(tokenizer_of: TokenizerOf) -> None:
    """The question offers no tools, asks for no reasoning, and keeps the caller's other variables."""
    tokenizer = tokenizer_of("qwen3")
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    chat = chat_of([said("user", "Hi"), said("user", "Well?")], tools=[tool], template_variables={"x": 1})
    question = Summarizing.of(chat, tokenizer, 1000, 100).next_question([[said("user", "Hi")]], "", last=False)
    assert question is not None
    text = tokenizer.decode(question.token_ids, skip_special_tokens=False)
    assert "weather" not in text
    assert text.endswith("<think>\n\n</think>\n\n")
