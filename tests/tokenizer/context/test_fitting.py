"""Fitting by policy, over a model that writes what the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.fitting import MOST_QUESTIONS, Fitted, Fitting
from services.tokenizer.context.summary_stream import Written
from services.tokenizer.context.turns import turns_of, without
from services.tokenizer.context_policy import ContextPolicy, ContextPolicyKind
from services.tokenizer.events import ContextReport, Usage
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.context.histories import Message, chat_of, histories, said, tokens

Result = TypeVar("Result")
HEADING = "Summary of the earlier part of this conversation:\n"


@dataclass
class Model:
    """Writes the given texts, one a question and the last again and again, and keeps what it was asked."""

    texts: Sequence[str] = ("They met.",)
    questions: list[tuple[list[int], int]] = field(default_factory=list)

    async def write_summary(self, token_ids: list[int], most_tokens: int) -> Written:
        """Write the next."""
        text = self.texts[min(len(self.questions), len(self.texts) - 1)]
        self.questions.append((token_ids, most_tokens))
        return Written(text, Usage(len(token_ids), 7, 3))

    async def compute(self, work: Callable[[], Result]) -> Result:
        """At once."""
        return work()


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's."""
    return tokenizer_of(SMOLLM2)


def summarizing(messages: Sequence[Message], summary: str = "", **more: Any) -> ChatPrompt:
    """A conversation to be summarized where it is too long."""
    return chat_of(messages, policy=ContextPolicy(ContextPolicyKind.SUMMARIZE, summary), **more)


def sliding(messages: Sequence[Message]) -> ChatPrompt:
    """A conversation to be cut where it is too long."""
    return chat_of(messages, policy=ContextPolicy(ContextPolicyKind.SLIDING_WINDOW))


async def fit(chat: ChatPrompt, tokenizer: TextTokenizer, limit: int, model: Model, context: int = 1000) -> Fitted:
    """Fit it."""
    return await Fitting(chat, tokenizer, limit, context, model).fit()


def talk(turns: int, words: int = 20) -> list[Message]:
    """So many turns, and a last question."""
    messages = [
        said(role, f"number {turn} " + "word " * words) for turn in range(turns) for role in ("user", "assistant")
    ]
    return [*messages, said("user", "Well?")]


async def test_a_sliding_window_is_reported(tokenizer: TextTokenizer) -> None:
    """The report names the policy and counts messages and tokens; the model is not asked. What fits has no report."""
    messages, model = talk(8), Model()
    fitted = await fit(sliding(messages), tokenizer, 300, model)
    assert fitted.report is not None
    kept = messages[fitted.report.dropped_messages :]
    assert fitted.token_ids == chat_of(kept).token_ids(tokenizer)
    left_out = tokens(messages, tokenizer) - tokens(kept, tokenizer)
    assert fitted.report == ContextReport(ContextPolicyKind.SLIDING_WINDOW, len(messages) - len(kept), left_out)
    assert (await fit(sliding(messages), tokenizer, 900, model)).report is None
    assert model.questions == []


async def test_a_summary_stands_for_what_is_left_out(tokenizer: TextTokenizer) -> None:
    """The model is asked about the turns that are left out, the prompt has its summary, and the report tells the
    summary and what it took."""
    messages, model = talk(8), Model()
    fitted = await fit(summarizing(messages), tokenizer, 300, model)
    report = fitted.report
    assert report is not None
    ((question, most_tokens),) = model.questions
    asked, prompt = tokenizer.decode(question), tokenizer.decode(fitted.token_ids)
    for turn in range(8):
        left_out = 2 * turn < report.dropped_messages
        assert (f"number {turn} " in asked, f"number {turn} " in prompt) == (left_out, not left_out)
    assert prompt.count(HEADING + "They met.") == 1
    assert len(fitted.token_ids) <= 300
    assert most_tokens == 300 // 8
    assert (report.summary, report.summary_usage) == ("They met.", Usage(len(question), 7, 3))
    assert (report.policy, report.unsummarized_messages) == (ContextPolicyKind.SUMMARIZE, 0)


async def test_an_earlier_summary_goes_on(tokenizer: TextTokenizer) -> None:
    """A summary that is handed back is in the prompt while all fits, without a report, and in the question when more
    is left out; then the new one takes its place."""
    model = Model(["They met and sailed."])
    all_fits = await fit(summarizing(talk(2), "They met."), tokenizer, 300, model)
    assert HEADING + "They met." in tokenizer.decode(all_fits.token_ids)
    assert (all_fits.report, model.questions) == (None, [])
    cut = await fit(summarizing(talk(8), "They met."), tokenizer, 300, model)
    assert HEADING + "They met." in tokenizer.decode(model.questions[0][0])
    prompt = tokenizer.decode(cut.token_ids)
    assert HEADING + "They met and sailed." in prompt and "They met.\n" not in prompt
    assert cut.report is not None and cut.report.summary == "They met and sailed."
    kept = summarizing(talk(8)[cut.report.dropped_messages :])
    with_earlier = [said("system", HEADING + "They met."), *talk(8)]
    assert cut.report.dropped_tokens == tokens(with_earlier, tokenizer) - tokens(
        [with_earlier[0], *kept.messages], tokenizer
    )


async def test_much_takes_several_questions_and_not_too_many(tokenizer: TextTokenizer) -> None:
    """What does not fit into one question is summarized piece by piece, each with the summary so far; what would take
    more than the bound is left out of it, the oldest first, and counted."""
    model = Model(["First.", "Second.", "Third.", "Fourth."])
    fitted = await fit(summarizing(talk(24)), tokenizer, 300, model, context=500)
    report = fitted.report
    assert report is not None and report.summary_usage is not None
    asked = [tokenizer.decode(question) for question, _ in model.questions]
    assert 2 <= len(asked) <= MOST_QUESTIONS
    assert all(len(question) + most_tokens <= 500 for question, most_tokens in model.questions)
    assert all(HEADING + text in after for text, after in zip(model.texts, asked[1:], strict=False))
    assert report.summary == model.texts[len(asked) - 1]
    assert report.summary_usage.completion_tokens == 7 * len(asked)
    long = await fit(summarizing(talk(200)), tokenizer, 300, model := Model(), context=500)
    assert len(model.questions) <= MOST_QUESTIONS
    assert long.report is not None
    shown = {
        turn
        for turn in range(200)
        for question, _ in model.questions
        if f"number {turn} " in tokenizer.decode(question)
    }
    dropped = long.report.dropped_messages // 2
    assert shown == set(range(dropped - len(shown), dropped))
    assert long.report.unsummarized_messages == 2 * (dropped - len(shown))


async def test_an_empty_summary_keeps_the_earlier_one(tokenizer: TextTokenizer) -> None:
    """A model that writes nothing harms nothing: the earlier summary stays, and what it does not hold is counted."""
    fitted = await fit(summarizing(talk(8), "They met."), tokenizer, 300, Model([""]))
    assert fitted.report is not None
    assert fitted.report.summary == "They met."
    assert fitted.report.unsummarized_messages == fitted.report.dropped_messages > 0
    assert HEADING + "They met." in tokenizer.decode(fitted.token_ids)
    nothing = await fit(summarizing(talk(8)), tokenizer, 300, Model([""]))
    assert nothing.report is not None and nothing.report.summary == ""
    assert HEADING not in tokenizer.decode(nothing.token_ids)


async def test_a_summary_that_is_too_long_is_shortened(tokenizer: TextTokenizer) -> None:
    """The prompt fits whatever the model wrote, and the report tells what of it the prompt holds."""
    fitted = await fit(summarizing(talk(8)), tokenizer, 300, Model(["All at sea. " * 300]))
    assert len(fitted.token_ids) <= 300
    assert fitted.report is not None
    assert 20 < len(fitted.report.summary) < 3000
    assert HEADING + fitted.report.summary in tokenizer.decode(fitted.token_ids)
    earlier = await fit(summarizing(talk(1), "All at sea. " * 300), tokenizer, 300, Model())
    assert len(earlier.token_ids) <= 300
    assert earlier.report is not None
    assert (
        earlier.report.dropped_messages,
        HEADING + earlier.report.summary in tokenizer.decode(earlier.token_ids),
    ) == (
        0,
        True,
    )


async def test_no_room_for_a_summary(tokenizer: TextTokenizer) -> None:
    """Where what stays leaves no room for a summary, none is written, and all that is left out is counted; where even
    that does not fit, both figures are told."""
    messages, model = talk(3), Model()
    least = tokens(messages[-1:], tokenizer)
    fitted = await fit(summarizing(messages), tokenizer, least + 5, model)
    assert fitted.report is not None
    assert (fitted.report.summary, fitted.report.unsummarized_messages, model.questions) == ("", 6, [])
    with pytest.raises(InvalidRequest, match=f"leaves {least - 1} tokens .* have {least} tokens") as caught:
        await fit(summarizing(messages), tokenizer, least - 1, model)
    assert caught.value.reason == "CONTEXT_LENGTH_EXCEEDED"


@settings(max_examples=40, deadline=None)
@given(st.data())
async def test_any_history_and_limit(tokenizer: TextTokenizer, data: st.DataObject) -> None:
    """For random conversations, limits and summaries: the prompt fits, its last turn and system message are whole, and
    its summary is the one that is reported."""
    messages = data.draw(histories())
    earlier = data.draw(st.sampled_from(["", "They met.", "word " * 100]))
    written = data.draw(st.sampled_from(["", "They sailed.", "sea " * 200]))
    turns = turns_of(messages)
    least = tokens(without(messages, turns[:-1]), tokenizer)
    limit = data.draw(st.integers(least, tokens(messages, tokenizer) + 200))
    fitted = await fit(summarizing(messages, earlier), tokenizer, limit, Model([written]), limit + 50)
    assert len(fitted.token_ids) <= limit
    summary = earlier if fitted.report is None else fitted.report.summary
    kept = messages
    if fitted.report is not None:
        dropped = fitted.report.dropped_messages
        others = [message for message in messages if message["role"] != "system"]
        kept = [message for message in messages if message["role"] == "system"] + others[dropped:]
    if summary:
        first = kept[0]
        kept = (
            [said("system", f"{first['content']}\n\n{HEADING}{summary}"), *kept[1:]]
            if first["role"] == "system"
            else [said("system", HEADING + summary), *kept]
        )
    assert fitted.token_ids == chat_of(kept).token_ids(tokenizer)
    assert kept[-1] == messages[-1]


async def test_the_prompt_stays_the_same_from_turn_to_turn(tokenizer: TextTokenizer) -> None:
    """A caller that hands the summary back with the messages after it sends prompts that each go on from the last for
    several turns; the model is asked seldom."""
    model = Model()
    summary, messages, prompts, asked = "", [said("system", "Be brief.")], list[str](), list[int]()
    for turn in range(40):
        messages.append(said("user", f"Question {turn}, what comes now? " + "word " * 8))
        fitted = await fit(summarizing(messages, summary), tokenizer, 500, model)
        prompts.append(tokenizer.decode(fitted.token_ids))
        if fitted.report is not None:
            summary = fitted.report.summary
            messages = [messages[0], *messages[1 + fitted.report.dropped_messages :]]
        asked.append(len(model.questions))
        messages.append(said("assistant", f"Answer {turn}. " + "word " * 8))
    going_on = sum(
        two.startswith(one.removesuffix("<|im_start|>assistant\n").removesuffix("assistant\n"))
        for one, two in pairwise(prompts)
    )
    assert 3 <= asked[-1] <= 10
    assert going_on >= 39 - asked[-1]
