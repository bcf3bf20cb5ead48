"""Each sampling parameter reaches vLLM through HTTP and has its effect there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer

from tests.e2e.service import Service

END = 2
CAT, DOG = " cat", " dog"


@pytest.fixture(scope="module")
def ids(tiny_model: Path) -> dict[str, int]:
    """The ids of two words."""
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    found = {word: tokenizer.encode(word).ids for word in (CAT, DOG)}
    assert all(len(one) == 1 for one in found.values())
    return {word: one[0] for word, one in found.items()}


def complete(service: Service, **fields: Any) -> dict[str, Any]:
    """The one choice of a greedy completion, with its number of tokens."""
    body = {"model": service.model, "prompt": "The first", "temperature": 0, "max_tokens": 8, "logprobs": 0, **fields}
    answer = httpx.post(f"{service.url}/v1/completions", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    choice: dict[str, Any] = answer.json()["choices"][0]
    return {**choice, "tokens": answer.json()["usage"]["completion_tokens"]}


def text_of(service: Service, **fields: Any) -> str:
    """The text of a greedy completion."""
    text: str = complete(service, **fields)["text"]
    return text


def distinct(service: Service, **fields: Any) -> int:
    """Number of different tokens of 40."""
    return len(set(complete(service, max_tokens=40, ignore_eos=True, **fields)["logprobs"]["tokens"]))


def test_logit_bias_forces_and_bans(service: Service, ids: dict[str, int]) -> None:
    """A bias of 100 decides each token; one of -100 takes a token out."""
    assert text_of(service, logit_bias={str(ids[CAT]): 100}) == CAT * 8
    both = {str(ids[CAT]): 100, str(ids[DOG]): 100}
    first = text_of(service, max_tokens=1, logit_bias=both)
    banned = ids[first]
    other = DOG if first == CAT else CAT
    assert text_of(service, max_tokens=1, logit_bias={**both, str(banned): -100}) == other


def test_allowed_token_ids(service: Service, ids: dict[str, int]) -> None:
    """Nothing but the allowed tokens comes, greedily and sampling."""
    for temperature in (0, 1.5):
        text = text_of(service, allowed_token_ids=[ids[CAT], ids[DOG]], temperature=temperature, max_tokens=20)
        assert text.replace(CAT, "").replace(DOG, "") == "" and len(text) == 80


def test_stop_token_ids(service: Service, ids: dict[str, int]) -> None:
    """A stop token ends the text before it."""
    choice = complete(service, logit_bias={str(ids[CAT]): 100}, stop_token_ids=[ids[CAT]])
    assert (choice["text"], choice["finish_reason"], choice["tokens"]) == ("", "stop", 1)


def test_ignore_eos_and_min_tokens(service: Service) -> None:
    """The end token ends the text, not before min_tokens, and not at all with ignore_eos."""
    forced = {"logit_bias": {str(END): 100}}
    assert (complete(service, **forced)["finish_reason"], complete(service, **forced)["tokens"]) == ("stop", 1)
    late = complete(service, **forced, min_tokens=4)
    assert (late["finish_reason"], late["tokens"]) == ("stop", 5)
    endless = complete(service, **forced, ignore_eos=True)
    assert (endless["finish_reason"], endless["tokens"]) == ("length", 8)


def test_min_tokens_holds_for_stop_strings(service: Service, ids: dict[str, int]) -> None:
    """A stop string within the first min_tokens tokens does not end the text."""
    forced = {"logit_bias": {str(ids[CAT]): 100}, "stop": ["cat"]}
    assert (text_of(service, **forced), complete(service, **forced)["tokens"]) == (" ", 1)
    late = complete(service, **forced, min_tokens=3)
    assert (late["text"], late["finish_reason"], late["tokens"]) == (CAT * 3 + " ", "stop", 4)


def test_seed(service: Service) -> None:
    """The same seed gives the same text, another one another; so does each of several choices."""
    hot = {"temperature": 1.0, "max_tokens": 12}
    first = text_of(service, **hot, seed=11)
    assert text_of(service, **hot, seed=11) == first
    assert text_of(service, **hot, seed=12) != first
    body = {"model": service.model, "prompt": "The first", "seed": 11, "n": 3, **hot}
    answers = [httpx.post(f"{service.url}/v1/completions", json=body, timeout=60).json() for _ in range(2)]
    texts = [[choice["text"] for choice in answer["choices"]] for answer in answers]
    assert texts[0] == texts[1] and len(set(texts[0])) == 3 and texts[0][0] == first


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-9}])
def test_the_narrowest_sampling_is_greedy(service: Service, narrow: dict[str, Any]) -> None:
    """A sampling that keeps the most likely token alone gives the greedy text, and does not without that."""
    greedy = text_of(service)
    assert text_of(service, temperature=1.5, seed=5, **narrow) == greedy
    assert text_of(service, temperature=1.5, seed=5) != greedy


def test_penalties(service: Service, ids: dict[str, int]) -> None:
    """Each penalty makes tokens that were given less likely, or more with the opposite sign."""
    biased = {"allowed_token_ids": [ids[CAT], ids[DOG]], "logit_bias": {str(ids[CAT]): 20}, "max_tokens": 20}
    assert text_of(service, **biased) == CAT * 20
    assert DOG in text_of(service, **biased, frequency_penalty=2.0)
    assert distinct(service, presence_penalty=-2.0) < distinct(service, presence_penalty=2.0)
    assert distinct(service, repetition_penalty=0.5) < distinct(service, repetition_penalty=2.0)


def test_chat_passes_them_on_too(service: Service, ids: dict[str, int]) -> None:
    """A chat's parameters take the same way."""
    body = {
        "model": service.model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_completion_tokens": 3,
        "logit_bias": {str(ids[DOG]): 100},
    }
    choice = httpx.post(f"{service.url}/v1/chat/completions", json=body, timeout=60).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (DOG * 3, "length")
