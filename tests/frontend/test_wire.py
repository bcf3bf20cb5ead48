"""Each parameter reaches the text service under its own name and with its own value."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion

SAMPLING: dict[str, Any] = {
    "temperature": 0,
    "top_p": 0.5,
    "top_k": -1,
    "min_p": 0.25,
    "presence_penalty": -2,
    "frequency_penalty": 1.5,
    "repetition_penalty": 1.25,
    "seed": -(2**63),
    "max_tokens": 2**32 - 1,
    "min_tokens": 0,
    "ignore_eos": True,
    "stop_token_ids": [0, 7],
    "logit_bias": {"0": -100, "49151": 0.5},
    "allowed_token_ids": [1, 2, 3],
}


async def sent(
    frontend: Frontend, service: ScriptedTextService, path: str, request: dict[str, Any]
) -> text_pb2.GenerateRequest:
    """Send a request and return what the text service was asked."""
    response = await frontend.client.post(path, json=request)
    assert response.status_code == 200, response.text
    return service.requests[-1]


@pytest.mark.parametrize(("path", "request_of"), [(CHAT, chat), (COMPLETIONS, completion)])
async def test_sampling_params(frontend: Frontend, service: ScriptedTextService, path: str, request_of: Any) -> None:
    """All sampling parameters arrive unchanged, zeros too."""
    message = await sent(frontend, service, path, request_of(**SAMPLING))
    params = MessageToDict(message.sampling_params, preserving_proto_field_name=True)
    params["seed"] = int(params["seed"])
    assert params == SAMPLING


@pytest.mark.parametrize(("path", "request_of"), [(CHAT, chat), (COMPLETIONS, completion)])
async def test_unset_stays_unset(frontend: Frontend, service: ScriptedTextService, path: str, request_of: Any) -> None:
    """What a caller does not set is left to the tiers behind: nothing is sent in its place."""
    message = await sent(frontend, service, path, request_of(temperature=None))
    assert message.sampling_params.ListFields() == []
    names = {field.name for field, _ in message.ListFields()}
    assert names == {"request_id", "model", "sampling_params", "chat" if path == CHAT else "text"}


async def test_output_options(frontend: Frontend, service: ScriptedTextService) -> None:
    """Number of choices, stop strings and what the text keeps arrive."""
    message = await sent(
        frontend,
        service,
        CHAT,
        chat(n=2, stop=["a", "\nUser:"], include_stop_str_in_output=True, skip_special_tokens=False),
    )
    assert (message.n, list(message.stop)) == (2, ["a", "\nUser:"])
    assert message.include_stop_str_in_output
    assert message.HasField("skip_special_tokens")
    assert not message.skip_special_tokens


async def test_one_stop_string(frontend: Frontend, service: ScriptedTextService) -> None:
    """A stop that is one string is a list of one."""
    assert list((await sent(frontend, service, CHAT, chat(stop="END"))).stop) == ["END"]


async def test_max_completion_tokens(frontend: Frontend, service: ScriptedTextService) -> None:
    """The newer name of max_tokens means the same."""
    assert (await sent(frontend, service, CHAT, chat(max_completion_tokens=7))).sampling_params.max_tokens == 7


@pytest.mark.parametrize(("prompt", "expected"), [("", ""), ("a b", "a b"), (["a b"], "a b")])
async def test_text_prompts(frontend: Frontend, service: ScriptedTextService, prompt: Any, expected: str) -> None:
    """A prompt of text, alone or as a list of one, arrives as text."""
    message = await sent(frontend, service, COMPLETIONS, completion(prompt, add_special_tokens=False))
    assert (message.WhichOneof("prompt"), message.text.text) == ("text", expected)
    assert message.text.HasField("add_special_tokens")
    assert not message.text.add_special_tokens


@pytest.mark.parametrize("prompt", [[1, 0, 2], [[1, 0, 2]]])
async def test_token_prompts(frontend: Frontend, service: ScriptedTextService, prompt: Any) -> None:
    """A prompt of token ids, alone or as a list of one, arrives as token ids."""
    message = await sent(frontend, service, COMPLETIONS, completion(prompt))
    assert list(message.tokens.token_ids) == [1, 0, 2]


async def test_messages(frontend: Frontend, service: ScriptedTextService) -> None:
    """Roles, text, parts, names, tool calls and their answers arrive as they are."""
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "content": ""},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "reasoning_content": "hm"},
        {"role": "tool", "content": "2", "tool_call_id": "call_1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "tool_calls": None, "audio": None},
        {"role": "user", "content": "x"},
    ]
    message = await sent(frontend, service, CHAT, {"model": "scripted", "messages": messages})
    assert [MessageToDict(each, preserving_proto_field_name=True) for each in message.chat.messages] == [
        {"role": "system", "text": ""},
        {"role": "developer", "text": "be brief"},
        {"role": "user", "parts": {"parts": [{"text": "a"}, {"text": "b"}]}, "name": "ann"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "name": "add", "arguments_json": '{"a": 1}'}],
            "reasoning": "hm",
        },
        {"role": "tool", "text": "2", "tool_call_id": "call_1"},
        {"role": "assistant", "parts": {"parts": [{"text": "no"}]}},
        {"role": "user", "text": "x"},
    ]


async def test_template_options(frontend: Frontend, service: ScriptedTextService) -> None:
    """What the chat template is told arrives."""
    kwargs = {"enable_thinking": False, "documents": [{"title": "ä"}]}
    message = await sent(
        frontend,
        service,
        CHAT,
        chat(
            chat_template_kwargs=kwargs,
            reasoning_effort="low",
            add_generation_prompt=False,
            continue_final_message=True,
        ),
    )
    assert orjson.loads(message.chat.chat_template_kwargs_json) == kwargs
    assert message.chat.reasoning_effort == "low"
    assert message.chat.HasField("add_generation_prompt")
    assert not message.chat.add_generation_prompt
    assert message.chat.continue_final_message
