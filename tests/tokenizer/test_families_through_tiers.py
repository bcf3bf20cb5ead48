"""One text, whichever way it is asked for, with the tokenizers of many models: all tiers over an engine that says
chosen ids."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.tokenizer.tokenizer_files import TOKENIZER_JSON
from streamomni.text.v1 import text_pb2
from tests.tokenizer.all_tiers import Tiers, all_tiers
from tests.tokenizer.choice_recorder import first_stop
from tests.tokenizer.conftest import DirectoryOf
from tests.tokenizer.engine_fixtures import asking, endless, until
from tests.tokenizer.plain_texts import plain_text
from tests.tokenizer.small_tokenizers import wordpiece
from tests.tokenizer.text_link import text_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPT = [7]
CASES = 24


@dataclass
class Case:
    """Ids that the engine says for a seed, what is asked of their text, and what the answer must be."""

    seed: int
    token_ids: list[int]
    stops: list[str]
    include: bool
    skip: bool
    text: str = ""
    stop: str | None = None
    tokens: int = 0


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["qwen3", "llama2", "wordpiece"])
async def tiers(
    request: pytest.FixtureRequest, directory_of: DirectoryOf, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Tiers]:
    """All tiers with one tokenizer."""
    directory = _wordpiece(tmp_path_factory) if request.param == "wordpiece" else directory_of(request.param)
    async with all_tiers(directory) as running:
        yield running


def _wordpiece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wordpiece")
    wordpiece().save(str(directory / TOKENIZER_JSON))
    return directory


def case(tiers: Tiers, seed: int) -> Case:
    """A case at random, the same for the same seed."""
    chance, table = random.Random(seed), tiers.text.models.find("").tokenizer.table
    parts = sorted(one for one in table.token_bytes if table.texts[one] is None) if table.texts else [5]
    sorts = [sorted(table.token_bytes), parts, sorted(table.special_ids) or [5]]
    ids = [chance.choice(chance.choice(sorts)) for _ in range(chance.randint(1, 24))]
    made = Case(seed, ids, [], chance.random() < 0.5, chance.random() < 0.5, tokens=len(ids))
    whole = plain_text(tiers.reference, table, ids, made.skip, PROMPT)
    for _ in range(chance.randint(0, 3)):
        begin = chance.randrange(len(whole) + 1)
        stop = whole[begin : begin + chance.randint(1, 5)]
        made.stops += [stop] if stop and "\ufffd" not in stop else []
    match = first_stop(made.stops, whole)
    made.text = whole
    if match is not None:
        made.stop, end = match
        made.text = whole[: end if made.include else end - len(made.stop)]
        made.tokens = next(
            count
            for count in range(1, len(ids) + 1)
            if plain_text(tiers.reference, table, ids[:count], made.skip, PROMPT).startswith(whole[:end])
        )
    tiers.text.engine.lines.by_seed[seed] = ids
    return made


def grpc_request(case: Case) -> text_pb2.GenerateRequest:
    """The case as a request of the text service."""
    return asking(
        PROMPT,
        stop=case.stops,
        include_stop_str_in_output=case.include,
        skip_special_tokens=case.skip,
        sampling_params=endless(max_tokens=len(case.token_ids), seed=case.seed),
    )


def http_fields(case: Case) -> dict[str, Any]:
    """The case as the fields of a completion."""
    return {
        "prompt": PROMPT,
        "stop": case.stops or None,
        "include_stop_str_in_output": case.include,
        "skip_special_tokens": case.skip,
        "max_tokens": len(case.token_ids),
        "seed": case.seed,
        "ignore_eos": True,
    }


async def over_http(tiers: Tiers, case: Case) -> None:
    """Ask for it in one piece and streamed."""
    answer = (await tiers.post("completions", **http_fields(case))).json()
    (choice,) = answer["choices"]
    assert (choice["text"], answer["usage"]["completion_tokens"]) == (case.text, case.tokens)
    assert (choice["finish_reason"], choice.get("stop_reason")) == ("stop" if case.stop else "length", case.stop)
    chunks = await tiers.chunks("completions", stream_options={"include_usage": True}, **http_fields(case))
    assert chunks.pop()["usage"] == answer["usage"]
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(piece["text"] for piece in choices) == case.text
    assert all(piece["text"] for piece in choices[:-1]), "no event without text"
    assert [piece["finish_reason"] for piece in choices if piece["finish_reason"]] == [choice["finish_reason"]]


async def test_every_way_gives_the_plain_text(tiers: Tiers) -> None:
    """For random ids, stops and settings: completions in one piece and streamed, the text service's call and link, and
    Detokenize give the reference's text, cut at the first stop, with the same ids and usage."""
    cases = [case(tiers, seed) for seed in range(1, CASES + 1)]
    async with text_link(tiers.text.stub) as link:
        linked = [await link.start(one.seed, grpc_request(one)) for one in cases]
        called = await asyncio.gather(*(tiers.text.generate(grpc_request(one)) for one in cases))
        await until(lambda: all(answer.finishes for answer in linked), 10)
    for one, *answers in zip(cases, called, linked, strict=True):
        for answer in answers:
            assert answer.error is None
            assert (answer.text(), answer.token_ids()) == (one.text, one.token_ids[: one.tokens])
            assert answer.finish.stop_string == (one.stop or "")
            assert answer.finish.usage.completion_tokens == one.tokens
            assert all(delta.text for delta in answer.deltas[:-1])
    await asyncio.gather(*(over_http(tiers, one) for one in cases))
    tokenizer = tiers.text.models.find("").tokenizer
    for one in cases:
        request = text_pb2.DetokenizeRequest(token_ids=one.token_ids, skip_special_tokens=one.skip)
        text = (await tiers.text.stub.Detokenize(request)).text
        assert text == plain_text(tiers.reference, tokenizer.table, one.token_ids, one.skip)
