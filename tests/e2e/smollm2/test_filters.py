"""Output filters on the running service: a constraint makes the model say a chosen text."""

from __future__ import annotations

import grpc
import pytest

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.e2e.service import Service

SAID = "It is PARIS, and the s3cret ends."


def answer(service: Service, caller: str) -> tuple[str, text_pb2.Finished]:
    """What this caller gets of the text, and its end."""
    params = sampling_pb2.SamplingParams(temperature=0, max_tokens=24)
    params.structured_output.choice.values.append(SAID)
    chat = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="Say it.")])
    request = text_pb2.GenerateRequest(model=service.model, chat=chat, sampling_params=params, caller=caller)
    with grpc.insecure_channel(service.tokenizer) as channel:
        responses = list(text_pb2_grpc.TextServiceStub(channel).Generate(request, timeout=60))
    return "".join(response.delta.text for response in responses), responses[-1].finished


def test_a_word_is_masked_and_a_pattern_stops(service: Service) -> None:
    """For the caller whom the rules are for, the word is masked in any case, and the answer ends before the pattern."""
    text, finished = answer(service, "filtered")
    assert text == "It is █████, and the "
    assert finished.reason == sampling_pb2.FINISH_REASON_CONTENT_FILTER
    assert [(match.rule, match.start, match.length) for match in finished.filter_matches] == [
        ("city", 6, 5),
        ("secret", 21, 6),
    ]


@pytest.mark.parametrize("caller", ["", "others"])
def test_rules_are_for_their_callers(service: Service, caller: str) -> None:
    """Whoever the rules are not for gets the text as it is."""
    text, finished = answer(service, caller)
    assert text == SAID
    assert finished.reason == sampling_pb2.FINISH_REASON_STOP and not finished.filter_matches
