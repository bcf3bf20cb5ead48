"""Format checks on the running service: a constraint makes the model say a chosen text."""

from __future__ import annotations

import json
from typing import Any

import grpc
import httpx
import pytest

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.e2e.service import Service, wait_until

BROKEN = '{"a": 1} So it is'
FAULT = {"check": "json", "position": 9, "message": "'S' stands after the value, where the text must end"}
BLOCK = "```js\nf(]\n```"
BLOCK_FAULT = {"check": "code_blocks", "position": 8, "message": "']' does not close '('"}


def body(service: Service, text: str, **fields: Any) -> dict[str, Any]:
    """A chat that is answered with this text."""
    messages = [{"role": "user", "content": "Say it."}]
    forced = {"structured_outputs": {"choice": [text]}}
    return {"model": service.model, "messages": messages, "temperature": 0, "max_tokens": 24, **forced, **fields}


def whole(service: Service, text: str, **fields: Any) -> dict[str, Any]:
    """The answer's choice, and its usage in it."""
    response = httpx.post(f"{service.url}/v1/chat/completions", json=body(service, text, **fields), timeout=60)
    assert response.status_code == 200, response.text
    answer = response.json()
    choice: dict[str, Any] = answer["choices"][0]
    return {**choice, "text": choice["message"]["content"], "tokens": answer["usage"]["completion_tokens"]}


def streamed(service: Service, text: str, **fields: Any) -> list[dict[str, Any]]:
    """The choices of the streamed answer's chunks."""
    asked = body(service, text, stream=True, **fields)
    with httpx.stream("POST", f"{service.url}/v1/chat/completions", json=asked, timeout=60) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return [json.loads(event)["choices"][0] for event in events]


def text_of(choices: list[dict[str, Any]]) -> str:
    """The text of a stream's chunks."""
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize(("check", "text", "fault"), [("json", BROKEN, FAULT), ("code_blocks", BLOCK, BLOCK_FAULT)])
def test_faults_are_told(service: Service, check: str, text: str, fault: dict[str, Any]) -> None:
    """A fault is told in the stream when its text has come, in the closing chunk and in the whole answer, which stays
    as the model wrote it."""
    answer = whole(service, text, format_checks=[check])
    assert (answer["text"], answer["finish_reason"], answer["format_faults"]) == (text, "stop", [fault])
    choices = streamed(service, text, format_checks=[check])
    assert text_of(choices) == text
    telling = [position for position, choice in enumerate(choices) if "format_faults" in choice]
    assert [choices[position]["format_faults"] for position in telling] == [[fault], [fault]]
    assert telling[1] == len(choices) - 1
    assert len(text_of(choices[: telling[0]])) > fault["position"]
    assert text_of(choices[telling[0] :]), "told while the text comes, not at its end"


def test_stop_at_the_first_fault(service: Service) -> None:
    """With a stop the answer ends before the fault with content_filter, the same streamed and not, and the engine is
    free at once."""
    asked = {"format_checks": ["json", "code_blocks"], "stop_on_format_fault": True}
    text = BROKEN + " and on" * 60
    answer = whole(service, text, **asked, max_tokens=400)
    assert answer["text"] == '{"a": 1} '
    assert (answer["finish_reason"], answer["format_faults"]) == ("content_filter", [FAULT])
    assert answer["tokens"] < 15
    choices = streamed(service, text, **asked, max_tokens=400)
    wait_until(service.is_idle, 1, "vLLM is not idle")
    assert text_of(choices) == answer["text"]
    assert (choices[-1]["finish_reason"], choices[-1]["format_faults"]) == ("content_filter", [FAULT])


def test_right_and_cut_off(service: Service) -> None:
    """JSON has no fault; cut off by max_tokens it has one at its end, and the reason stays."""
    text = '{"a": [1, 2, "b"]}'
    asked = {"format_checks": ["json"], "stop_on_format_fault": True}
    answer = whole(service, text, **asked)
    assert (answer["text"], answer["finish_reason"]) == (text, "stop") and "format_faults" not in answer
    cut = whole(service, text, **asked, max_tokens=4)
    assert cut["finish_reason"] == "length"
    assert [fault["position"] for fault in cut["format_faults"]] == [len(cut["text"])]


def test_completions_and_grpc(service: Service) -> None:
    """Completions, and text over gRPC, are checked alike."""
    asked = {"model": service.model, "prompt": "Say it.", "max_tokens": 24, "format_checks": ["json"]}
    forced = {"structured_outputs": {"choice": [BROKEN]}}
    answer = httpx.post(f"{service.url}/v1/completions", json={**asked, **forced}, timeout=60).json()
    assert answer["choices"][0]["format_faults"] == [FAULT]
    params = sampling_pb2.SamplingParams(max_tokens=24)
    params.structured_output.choice.values.append(BROKEN)
    request = text_pb2.GenerateRequest(
        chat=chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="Say it.")]),
        sampling_params=params,
        format_checks=[text_pb2.FORMAT_CHECK_JSON],
        stop_at_format_fault=True,
    )
    with grpc.insecure_channel(service.tokenizer) as channel:
        events = list(text_pb2_grpc.TextServiceStub(channel).Generate(request))
    assert events[-1].finished.reason == sampling_pb2.FINISH_REASON_CONTENT_FILTER
    assert [fault.position for fault in events[-1].finished.format_faults] == [9]
    assert "".join(event.delta.text for event in events) == '{"a": 1} '
