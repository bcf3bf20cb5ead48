"""Stop strings over exact ids from real vLLM: what is shown, what is counted, and that the engine stops."""

from __future__ import annotations

from typing import Any

import grpc
import httpx
import pytest
from tokenizers import Tokenizer

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from tests.e2e.forced import PROMPT, Whole, grammar, ids_of, in_one_piece, over_grpc, streamed
from tests.e2e.service import Service, wait_until


def every_way(service: Service, ids: list[int], stops: list[str], include: bool = False) -> Whole:
    """The answer of each way, which must all be the same in text, tokens, counts and end."""
    asked: dict[str, Any] = {"stop": stops, "include_stop_str_in_output": include}
    whole, flowing = in_one_piece(service, ids, **asked), streamed(service, ids, **asked)
    called = over_grpc(service, ids, **asked)
    for other in (flowing, whole):
        assert other.text == called.text
        assert other.completion_tokens == called.finished.usage.completion_tokens == len(called.token_ids)
        assert other.stop_reason == (called.finished.stop_string or None)
        assert len(other.tokens) == other.completion_tokens, "none lost and none doubled"
    assert (flowing.tokens, flowing.finish_reason) == (whole.tokens, whole.finish_reason)
    assert called.token_ids == ids[: len(called.token_ids)]
    return flowing


def test_nothing_of_a_stop_in_pieces_leaks(service: Service, reference: Tokenizer) -> None:
    """Of a stop string in several tokens nothing is shown, and what comes after it is not said at all."""
    ids = ids_of(reference, "Hi", "\nUser", ":", " more and more")
    answer = every_way(service, ids, ["\nUser:"])
    assert (answer.text, answer.finish_reason, answer.stop_reason) == ("Hi", "stop", "\nUser:")
    assert answer.completion_tokens == len(ids_of(reference, "Hi", "\nUser", ":"))


def test_the_stop_completed_first_wins(service: Service, reference: Tokenizer) -> None:
    """Of abcd and bc in abcd, bc is complete first."""
    answer = every_way(service, ids_of(reference, "a", "b", "c", "d"), ["abcd", "bc"])
    assert (answer.text, answer.stop_reason, answer.completion_tokens) == ("a", "bc", 3)


def test_the_beginning_of_a_stop_is_shown_at_the_end(service: Service, reference: Tokenizer) -> None:
    """What was held back is text when the answer ends, by its length or by the end token."""
    ids = ids_of(reference, "Hi", "\nUse")
    answer = every_way(service, ids, ["\nUser:"])
    assert (answer.text, answer.finish_reason, answer.stop_reason) == ("Hi\nUse", "length", None)
    for ask in (streamed, in_one_piece):
        ended = ask(service, ids, stop=["\nUser:"], ignore_eos=False, max_tokens=len(ids) + 5)
        assert (ended.text, ended.finish_reason, ended.completion_tokens) == ("Hi\nUse", "stop", len(ids) + 1)


def test_only_a_beginning_of_a_stop_is_held_back(service: Service, reference: Tokenizer) -> None:
    """Text that cannot become a stop goes out with its own token, held text with the next; none is empty."""
    flowing = streamed(service, ids_of(reference, "one", " #", " two", "#", "#"), stop=["###"], logprobs=None)
    assert flowing.deltas == ["one", " ", "# two", "##"]


@pytest.mark.parametrize(("include", "text"), [(False, "so "), (True, "so th")])
def test_a_stop_inside_a_token(service: Service, reference: Tokenizer, include: bool, text: str) -> None:
    """The rest of the token is no text, the token counts whole, and log probabilities end with it."""
    answer = every_way(service, ids_of(reference, "so", " there", " is"), ["th"], include)
    assert (answer.text, answer.tokens, answer.finish_reason) == (text, ["so", " there"], "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_the_engine_stops_at_once(service: Service, reference: Tokenizer, stream: bool) -> None:
    """A stop string found in the tokenizer ends the request at the engine within a second, long before its length,
    and the answer names it."""
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")
    word = ids_of(reference, " go")
    asked = {
        "structured_outputs": None,
        "logit_bias": {str(word[0]): 100},
        "max_tokens": 8000,
        "stop": [" go" * 20],
    }
    answer = (streamed if stream else in_one_piece)(service, word, **asked)
    assert (answer.text, answer.finish_reason, answer.stop_reason) == ("", "stop", " go" * 20)
    assert answer.completion_tokens == 20
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_stops_on_the_token_id_path(service: Service, reference: Tokenizer) -> None:
    """With a prompt of ids stop strings hold in every way that takes them, for each of several choices. The engine
    knows no text and has no field for them: its stop tokens are what holds there."""
    ids = ids_of(reference, "go on", " stop", " there")
    assert every_way(service, ids, [" stop"]).text == "go on"
    body = {"model": service.model, "prompt": [PROMPT, PROMPT], "n": 2, "max_tokens": len(ids), "stop": " stop"}
    body["structured_outputs"] = {"grammar": grammar(ids)}
    choices = httpx.post(f"{service.url}/v1/completions", json=body, timeout=60).json()["choices"]
    assert [(one["text"], one["stop_reason"]) for one in choices] == [("go on", " stop")] * 4
    for message in (engine_pb2.GenerateRequest, sampling_pb2.SamplingParams):
        assert [name for name in message.DESCRIPTOR.fields_by_name if "stop" in name] in ([], ["stop_token_ids"])
    params = sampling_pb2.SamplingParams(max_tokens=len(ids), stop_token_ids=ids_of(reference, " stop"))
    params.structured_output.grammar = grammar(ids)
    with grpc.insecure_channel(service.engine) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        events = list(stub.Generate(engine_pb2.GenerateRequest(prompt_token_ids=PROMPT, sampling_params=params)))
    said = [token_id for event in events for token_id in event.delta.token_ids]
    assert said == ids_of(reference, "go on", " stop")
    assert events[-1].finished.stop_token_id == said[-1]
