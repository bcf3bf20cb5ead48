"""Conversations that are cut to fit, through all tiers: over HTTP in both forms, over the call and over the link."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.chassis.errors import InvalidRequest, Unsupported
from services.chassis.status import error_of_call
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.tokenizer.all_tiers import Tiers, all_tiers
from tests.tokenizer.context.histories import Message, chat_of, said, tokens
from tests.tokenizer.engine_fixtures import END, Answer, sampling, until
from tests.tokenizer.text_link import text_link

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]

CONTEXT = 2048
# Leaves a prompt of 300 tokens.
ROOM = 1748
KIND = chat_pb2.ContextPolicy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tiers(smollm2: Path) -> AsyncIterator[Tiers]:
    """All tiers; the engine says a short answer, and a short summary where no seed is given."""
    async with all_tiers(smollm2) as running:
        lines = running.text.engine.lines.by_seed
        lines[7] = [*running.text.encode("Yes, of course."), END]
        lines[0] = [*running.text.encode("They met in Nantes."), END]
        yield running


def talk(turns: int) -> list[Message]:
    """A system message, so many turns of 60 tokens, and a last question."""
    messages = [said(role, f"number {turn} " + "word " * 20) for turn in range(turns) for role in ("user", "assistant")]
    return [said("system", "Be brief."), *messages, said("user", "Well?")]


def fields(policy: str | None, turns: int = 12, **more: Any) -> dict[str, Any]:
    """Fields of a chat."""
    policies = {} if policy is None else {"context_policy": policy}
    return {"messages": talk(turns), "seed": 7, "max_tokens": ROOM, **policies, **more}


def asked(messages: list[Message], policy: chat_pb2.ContextPolicy, seed: int = 7) -> text_pb2.GenerateRequest:
    """The same as a message."""
    sent = [chat_pb2.ChatMessage(role=str(one["role"]), text=str(one["content"])) for one in messages]
    chat = chat_pb2.ChatPrompt(messages=sent, context_policy=policy)
    return text_pb2.GenerateRequest(chat=chat, sampling_params=sampling(seed=seed, max_tokens=ROOM))


def prompts(tiers: Tiers) -> list[str]:
    """What the engine was asked since the last look."""
    requests = tiers.text.engine.lines.requests
    decode = tiers.text.models.find("").tokenizer.decode
    texts = [decode(request.prompt_token_ids) for request in requests]
    requests.clear()
    return texts


async def both_ways(tiers: Tiers, request: text_pb2.GenerateRequest) -> Answer:
    """The answer of the public call, after checking that the link tells the same."""
    answer = await tiers.text.generate(request)
    async with text_link(tiers.text.stub) as link:
        linked = await link.start(1, request)
        await until(lambda: bool(linked.finishes) or linked.error is not None)
    assert [one.context for one in linked.started] == [one.context for one in answer.started]
    assert (linked.text(), str(linked.error)) == (answer.text(), str(answer.error))
    return answer


async def test_a_window_whole_and_streamed(tiers: Tiers) -> None:
    """The answer goes on from the cut conversation; the body, and the stream's first chunk alone, tell what was left
    out; the prompt leaves the room that max_tokens asks for."""
    prompts(tiers)
    response = await tiers.post("chat/completions", **fields("sliding_window"))
    assert response.status_code == 200, response.text
    body = response.json()
    chunks = await tiers.chunks("chat/completions", **fields("sliding_window"))
    whole, streamed = prompts(tiers)
    assert whole == streamed
    assert "Be brief." in whole and "Well?" in whole and "number 11" in whole and "number 0" not in whole
    told = body["context"]
    tokenizer = tiers.text.models.find("").tokenizer
    assert body["usage"]["prompt_tokens"] == tokens(talk(12), tokenizer) - told["dropped_tokens"] <= CONTEXT - ROOM
    assert told["policy"] == "sliding_window"
    assert told.keys() == {"policy", "dropped_messages", "dropped_tokens"}
    kept = [talk(12)[0], *talk(12)[1 + told["dropped_messages"] :]]
    assert whole == tokenizer.decode(chat_of(kept).token_ids(tokenizer))
    assert [chunk.get("context") for chunk in chunks] == [told, *[None] * (len(chunks) - 1)]
    assert body["choices"][0]["message"]["content"] == "Yes, of course."


async def test_nothing_left_out_nothing_told(tiers: Tiers) -> None:
    """Where all fits, every policy gives the bytes that no policy gives."""
    bodies = []
    for policy in (None, "error", "sliding_window", "summarize"):
        for stream in (False, True):
            response = await tiers.post("chat/completions", **fields(policy, turns=2, stream=stream))
            bodies.append(response.text)
            assert '"context"' not in response.text
    shapes = [json.loads(body) for body in bodies[::2]]
    assert all(
        shape["usage"] | {"prompt_tokens_details": {}} == shapes[0]["usage"] | {"prompt_tokens_details": {}}
        for shape in shapes
    )
    assert all(shape.keys() == shapes[0].keys() for shape in shapes)
    assert len({body.count("data: ") for body in bodies[1::2]}) == 1


async def test_without_a_policy_it_is_refused(tiers: Tiers) -> None:
    """As ever, and the same with the policy by name: an error that names both figures."""
    for policy in (None, "error"):
        response = await tiers.post("chat/completions", **fields(policy, turns=60, max_tokens=None))
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
        assert f"the context of {CONTEXT} tokens" in error["message"]


async def test_what_always_stays_is_too_long(tiers: Tiers) -> None:
    """The error names the room beside the answer and what the system messages and the last turn take."""
    long = [*talk(3), said("assistant", "Well what?"), said("user", "word " * 400)]
    response = await tiers.post("chat/completions", **fields("sliding_window") | {"messages": long})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    tokenizer = tiers.text.models.find("").tokenizer
    least = tokens([long[0], long[-1]], tokenizer)
    assert f"leaves {CONTEXT - ROOM} tokens" in error["message"] and f"have {least} tokens" in error["message"]


async def test_a_summary_is_told_and_in_the_prompt(tiers: Tiers) -> None:
    """The engine is asked for a summary, and its text stands in the prompt of the answer and in the response, with what
    it took; the answer's own usage does not count it. Streamed it is the same, in the first chunk."""
    prompts(tiers)
    body = (await tiers.post("chat/completions", **fields("summarize", turns=6))).json()
    sizes = [len(request.prompt_token_ids) for request in tiers.text.engine.lines.requests]
    question, prompt = prompts(tiers)
    assert "Summarize our conversation" in question and "number 0" in question
    assert "Be brief.\n\nSummary of the earlier part of this conversation:\nThey met in Nantes." in prompt
    assert "number 0" not in prompt
    told = body["context"]
    assert (told["policy"], told["summary"]) == ("summarize", "They met in Nantes.")
    usage = told["summary_usage"]
    encode = tiers.text.models.find("").tokenizer.encode
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < usage["completion_tokens"] <= 300 // 8
    assert [usage["prompt_tokens"], body["usage"]["prompt_tokens"]] == sizes
    assert sizes[1] <= CONTEXT - ROOM
    assert body["usage"]["completion_tokens"] == len(encode("Yes, of course.", False)) + 1
    first, *rest = await tiers.chunks("chat/completions", **fields("summarize", turns=6))
    assert first["context"] == told
    assert not any("context" in chunk for chunk in rest)


async def test_reports_over_grpc(tiers: Tiers) -> None:
    """Call and link tell the same report; a summary that is handed back is in the next prompt and in the next
    question, and only the messages after it need be sent."""
    window = await both_ways(tiers, asked(talk(12), KIND(kind=KIND.KIND_SLIDING_WINDOW)))
    report = window.started[0].context
    assert (report.policy, report.summary) == (KIND.KIND_SLIDING_WINDOW, "")
    assert report.dropped_messages > 0 and report.dropped_tokens > 0 and not report.HasField("summary_usage")
    assert not (await tiers.text.generate(asked(talk(1), KIND()))).started[0].HasField("context")

    prompts(tiers)
    first = await tiers.text.generate(asked(talk(6), KIND(kind=KIND.KIND_SUMMARIZE)))
    report = first.started[0].context
    assert report.summary == "They met in Nantes." and report.summary_usage.completion_tokens > 0
    rest = [talk(6)[0], *talk(6)[1 + report.dropped_messages :]]
    prompts(tiers)
    handed = KIND(kind=KIND.KIND_SUMMARIZE, summary=report.summary)
    second = await both_ways(tiers, asked(rest, handed))
    assert not second.started[0].HasField("context")
    assert all("They met in Nantes." in prompt for prompt in prompts(tiers))
    third = await tiers.text.generate(asked([*rest, *talk(6)[1:]], handed))
    question, *_ = prompts(tiers)
    assert "They met in Nantes." in question and "Summarize" in question
    assert third.started[0].context.dropped_messages > 0


async def test_policies_that_make_no_sense_are_refused(tiers: Tiers) -> None:
    """An unknown kind, a summary for another kind and one that is much too long name the field."""
    for policy, message in (
        (KIND(kind=9), "kind 9 is unknown"),  # type: ignore[arg-type]
        (KIND(kind=KIND.KIND_SLIDING_WINDOW, summary="x"), "goes with kind SUMMARIZE only"),
        (KIND(summary="x"), "goes with kind SUMMARIZE only"),
        (KIND(kind=KIND.KIND_SUMMARIZE, summary="x" * 65537), "has 65537 characters; at most 65536"),
    ):
        answer = await both_ways(tiers, asked(talk(1), policy))
        assert isinstance(answer.error, InvalidRequest)
        assert answer.error.param == "context_policy"
        assert message in str(answer.error)


async def test_the_rendered_chat_is_cut_alike(tiers: Tiers) -> None:
    """RenderChat cuts as for an answer of no given length, and refuses to have a summary written."""
    chat = asked(talk(60), KIND(kind=KIND.KIND_SLIDING_WINDOW)).chat
    rendered = await tiers.text.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
    assert CONTEXT // 2 < len(rendered.token_ids) <= CONTEXT - CONTEXT // 4
    assert "number 59" in rendered.text and "number 0 " not in rendered.text and "Be brief." in rendered.text
    request = text_pb2.GenerateRequest(chat=chat, sampling_params=sampling(seed=7))
    prompts(tiers)
    answer = await tiers.text.generate(request)
    assert answer.error is None
    assert prompts(tiers) == [tiers.text.models.find("").tokenizer.decode(list(rendered.token_ids))]
    chat.context_policy.kind = KIND.KIND_SUMMARIZE
    with pytest.raises(Exception) as caught:
        await tiers.text.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
    error = error_of_call(caught.value)  # type: ignore[arg-type]
    assert (type(error), error.param) == (Unsupported, "context_policy")


async def test_cached_tokens_grow_from_turn_to_turn(tiers: Tiers) -> None:
    """Of a caller that sends its whole history, each prompt is found in the cache up to its newest turn, before
    anything is left out and after; only the turn at which more is left out begins anew behind the system message."""
    messages = [said("system", "Answer as a sailor would. " * 8)]
    cached, dropped, prompt_tokens = list[int](), list[int](), list[int]()
    for turn in range(24):
        messages.append(said("user", f"Harbour {turn}: what lies there?"))
        body = (
            await tiers.post(
                "chat/completions", messages=messages, seed=7, max_tokens=ROOM, context_policy="sliding_window"
            )
        ).json()
        cached.append(body["usage"]["prompt_tokens_details"]["cached_tokens"])
        prompt_tokens.append(body["usage"]["prompt_tokens"])
        dropped.append(body.get("context", {"dropped_messages": 0})["dropped_messages"])
        messages.append(said("assistant", "Yes, of course."))
    assert dropped == sorted(dropped) and dropped[-1] > 0
    moves = {turn for turn in range(1, 24) if dropped[turn] != dropped[turn - 1]}
    assert 2 <= len(moves) <= 6
    for turn in range(2, 24):
        if turn in moves:
            assert cached[turn] >= 48, "the system message stays in the cache"
        else:
            # Blocks of 16 tokens; the end of the last prompt opened the answer.
            assert cached[turn] > prompt_tokens[turn - 1] - 24
            assert cached[turn] >= cached[turn - 1] or turn - 1 in moves
