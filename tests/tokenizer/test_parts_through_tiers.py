"""Reasoning, content and calls with their log probabilities: Qwen 3's tokenizer in all tiers, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.tokenizer.all_tiers import Tiers, all_tiers
from tests.tokenizer.conftest import DirectoryOf

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAGS = {"<tool_call>": 151657, "</tool_call>": 151658, "<think>": 151667, "</think>": 151668}
END = 151645
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>'
STOP = "\nUser:"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tiers(directory_of: DirectoryOf) -> AsyncIterator[Tiers]:
    """All tiers."""
    async with all_tiers(directory_of("qwen3"), (END,)) as running:
        yield running


def say(tiers: Tiers, text: str, *, ends: bool = True) -> dict[str, Any]:
    """Fields of a chat that is answered with a text, its tags as the tokens that the model emits for them."""

    def ids_of(text: str) -> list[int]:
        for tag, token_id in TAGS.items():
            before, found, after = text.partition(tag)
            if found:
                return [*ids_of(before), token_id, *ids_of(after)]
        return tiers.text.encode(text) if text else []

    ids = ids_of(text)
    tiers.text.engine.lines.by_seed[7] = [*ids, END] if ends else ids
    messages = [{"role": "user", "content": "Hi"}]
    return {"messages": messages, "tools": [TOOL], "seed": 7, "max_tokens": len(ids) + ends, "logprobs": True}


class Streamed:
    """What came in chunks, in order."""

    def __init__(self, chunks: list[dict[str, Any]]) -> None:
        self.content = self.reasoning = self.arguments = ""
        self.told: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        for chunk in chunks:
            (choice,) = chunk["choices"]
            delta, logprobs = choice["delta"], choice.get("logprobs")
            self.content += delta.get("content") or ""
            self.reasoning += delta.get("reasoning") or ""
            self.arguments += "".join(call["function"].get("arguments", "") for call in delta.get("tool_calls", []))
            self.told += logprobs["content"] if logprobs else []
            self.reasons += [choice["finish_reason"]] if choice["finish_reason"] else []

    @property
    def bytes(self) -> str:
        """The tokens' bytes put together."""
        return b"".join(bytes(token["bytes"]) for token in self.told).decode()


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "arguments"),
    [
        (f"<think>Hm 🦙.</think>I look.{CALL}", "Hm 🦙.", "I look.", '{"a": "x"}'),
        (f"Look:\nUse{CALL}", "", "Look:\nUse", '{"a": "x"}'),
        ("<think>\nUser: me</think>Yes 🦙\nUse it", "\nUser: me", "Yes 🦙\nUse it", ""),
    ],
)
async def test_no_log_probability_is_lost_or_doubled(
    tiers: Tiers, text: str, reasoning: str, content: str, arguments: str
) -> None:
    """With text held back for a stop string, a character or a tag, in reasoning and in calls, each token is told
    once and in order, streamed as in one piece, and there are as many as the usage counts."""
    fields = say(tiers, text) | {"stop": [STOP]}
    answer = (await tiers.post("chat/completions", **fields)).json()
    (choice,) = answer["choices"]
    got = Streamed(await tiers.chunks("chat/completions", **fields))
    assert (got.reasoning, got.content, got.arguments) == (reasoning, content, arguments)
    assert got.bytes == f"{text}<|im_end|>"
    assert got.told == choice["logprobs"]["content"]
    assert len(got.told) == answer["usage"]["completion_tokens"] == len(tiers.text.engine.lines.by_seed[7])
    assert got.reasons == [choice["finish_reason"]] == ["tool_calls" if arguments else "stop"]


@pytest.mark.parametrize("text", ["I see <tool_ca", "<thi", "<tool_call>\n{"])
async def test_a_tag_that_is_cut_is_text(tiers: Tiers, text: str) -> None:
    """Where the stream ends inside a tag, what was held back is content, with its log probabilities."""
    fields = say(tiers, text, ends=False)
    answer = (await tiers.post("chat/completions", **fields)).json()["choices"][0]
    got = Streamed(await tiers.chunks("chat/completions", **fields))
    assert got.content == answer["message"]["content"] == text
    assert got.bytes == text
    assert got.reasons == [answer["finish_reason"]] == ["length"]


async def test_the_first_token_after_reasoning_is_kept(tiers: Tiers) -> None:
    """The answer begins with the token right after the closing tag."""
    got = Streamed(await tiers.chunks("chat/completions", **say(tiers, "<think>a</think>Yes, it is.")))
    assert (got.reasoning, got.content) == ("a", "Yes, it is.")


@pytest.mark.parametrize(
    "content", ["<think>\nWell", [{"type": "text", "text": "<think>"}, {"type": "text", "text": "Well"}]]
)
async def test_a_continued_message_may_be_inside_its_reasoning(tiers: Tiers, content: Any) -> None:
    """A final message of text or of parts is gone on with, and its reasoning is reasoning until it is closed."""
    fields = say(tiers, ", yes.</think>No.") | {"continue_final_message": True}
    fields["messages"] = [*fields["messages"], {"role": "assistant", "content": content}]
    got = Streamed(await tiers.chunks("chat/completions", **fields))
    assert (got.reasoning, got.content) == (", yes.", "No.")
    prompt = tiers.reference.decode(
        list(tiers.text.engine.lines.requests[-1].prompt_token_ids), skip_special_tokens=False
    )
    assert prompt.endswith("<think>\nWell")


@pytest.mark.parametrize("include", [False, True])
async def test_a_stop_string_ends_all_alike(tiers: Tiers, include: bool) -> None:
    """Where a stop string ends the content, log probabilities and usage end with the token that completed it."""
    fields = say(tiers, f"<think>a</think>Yes{STOP} and more") | {"stop": [STOP], "include_stop_str_in_output": include}
    answer = (await tiers.post("chat/completions", **fields)).json()
    got = Streamed(await tiers.chunks("chat/completions", **fields))
    assert got.content == answer["choices"][0]["message"]["content"] == ("Yes" + STOP if include else "Yes")
    assert got.bytes == f"<think>a</think>Yes{STOP}"
    assert len(got.told) == answer["usage"]["completion_tokens"]
    assert answer["choices"][0]["stop_reason"] == STOP
