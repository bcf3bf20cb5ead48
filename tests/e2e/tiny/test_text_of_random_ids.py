"""On real vLLM, random ids, stops and settings give one text in every way."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.forced import in_one_piece, over_grpc, reference_of, streamed
from tests.e2e.service import Service
from tests.tokenizer.choice_recorder import first_stop

CASES = 40


def test_every_way_gives_the_reference_text(service: Service, tiny_model: Path) -> None:
    """In one piece, streamed and over gRPC, many at once, the text is one-shot decoding by the reference tokenizer, cut
    at the first stop string, and ids, log probabilities and usage end with the token that completed it."""
    reference = reference_of(tiny_model)
    # Lone bytes and control tokens beside any; a grammar does not take the end token.
    sorts = [range(3, 49152), range(158, 260), [0, 1, *range(3, 17)]]

    def holds(seed: int) -> None:
        chance = random.Random(seed)
        ids = [chance.choice(chance.choice(sorts)) for _ in range(chance.randint(1, 20))]
        skip, include = chance.random() < 0.5, chance.random() < 0.5
        text: str = reference.decode(ids, skip_special_tokens=skip)
        begins = [chance.randrange(len(text) + 1) for _ in range(chance.randint(0, 3))]
        stops = [text[begin : begin + chance.randint(1, 5)] for begin in begins]
        stops = [stop for stop in stops if stop and "\ufffd" not in stop]
        match, tokens = first_stop(stops, text), len(ids)
        if match is not None:
            stop, end = match
            tokens = next(
                count
                for count in range(1, len(ids) + 1)
                if reference.decode(ids[:count], skip_special_tokens=skip).startswith(text[:end])
            )
            text = text[: end if include else end - len(stop)]
        asked: dict[str, Any] = {"stop": stops, "skip_special_tokens": skip, "include_stop_str_in_output": include}
        for ask in (in_one_piece, streamed):
            answer = ask(service, ids, **asked)
            assert (answer.text, answer.completion_tokens, len(answer.tokens)) == (text, tokens, tokens), (seed, ids)
            assert answer.stop_reason == (None if match is None else match[0])
        called = over_grpc(service, ids, **asked)
        assert (called.text, called.token_ids) == (text, ids[:tokens])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(holds, range(CASES)))
