"""Bad requests: each gets its status and OpenAI's error object, and reaches no text service."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of

JSON = {"content-type": "application/json"}
_PREFIX = b'{"model": "scripted", "messages": [{"role": "user", "content": "x"}], '

BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the body is empty"),
    "truncated": (_PREFIX, "not valid JSON"),
    "not an object": (b"[1]", "must be a JSON object"),
    "text": (b"hello", "not valid JSON"),
    "two documents": (b"{}{}", "not valid JSON"),
    "nested 10,000 deep": (_PREFIX + b'"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "not valid JSON"),
    "nested 65 deep": (_PREFIX + b'"x": ' + b"[" * 64 + b"]" * 64 + b"}", "more than 64 deep"),
    "NaN": (_PREFIX + b'"temperature": NaN}', "not valid JSON"),
    "Infinity": (_PREFIX + b'"temperature": Infinity}', "not valid JSON"),
    "a float beyond a double": (_PREFIX + b'"temperature": 1e999}', "not valid JSON"),
    "duplicate names": (_PREFIX + b'"n": 1, "n": 2}', "one name twice"),
    "duplicate names, one escaped": (_PREFIX + b'"n": 1, "\\u006e": 2}', "one name twice"),
    "duplicate names deep inside": (_PREFIX + b'"metadata": {"a": [{"b": 1, "b": 1}]}}', "one name twice"),
    "invalid UTF-8": (b'{"model": "\xff"}', "not valid JSON"),
    "UTF-8 of a surrogate": (b'{"model": "\xed\xa0\x80"}', "not valid JSON"),
    "unpaired surrogate": (_PREFIX + b'"stop": "\\ud800"}', "not valid JSON"),
    "byte order mark": (b"\xef\xbb\xbf{}", "not valid JSON"),
    "integer beyond 64 bits": (_PREFIX + b'"seed": 36893488147419103232}', "beyond 64 bits"),
    "integer beyond 64 bits in template kwargs": (
        _PREFIX + b'"chat_template_kwargs": {"x": [99999999999999999999]}}',
        "beyond 64 bits",
    ),
}

# Wrong members of a chat request, and the parameter that the error names.
CHAT_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model"),
    ({"model": ""}, "model"),
    ({"model": 5}, "model"),
    ({"model": "x" * 513}, "model"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [{"role": "user", "content": "x"}] * 10_000}, "messages"),
    ({"messages": ["hello"]}, "messages[0]"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "root", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": [], "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": []}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": "x", "name": 5}]}, "messages[0].name"),
    ({"messages": [{"role": "user", "content": "x", "tool_calls": [{}]}]}, "messages[0].tool_calls"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}, "messages[0].tool_calls[0]"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "messages[0].tool_call_id"),
    ({"n": 0}, "n"),
    ({"n": -1}, "n"),
    ({"n": 16384}, "n"),
    ({"n": True}, "n"),
    ({"n": 1.0}, "n"),
    ({"best_of": 1_000_000}, "best_of"),
    ({"logprobs": 1}, "logprobs"),
    ({"top_logprobs": 5}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": 2**63}, "max_tokens"),
    ({"max_tokens": "10"}, "max_tokens"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
    ({"min_tokens": 6, "max_tokens": 5}, "min_tokens"),
    ({"min_tokens": -1}, "min_tokens"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": 1e9}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.1}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 0.5}, "top_k"),
    ({"min_p": -0.1}, "min_p"),
    ({"min_p": 1.1}, "min_p"),
    ({"presence_penalty": 2.1}, "presence_penalty"),
    ({"frequency_penalty": -2.1}, "frequency_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"repetition_penalty": 2.1}, "repetition_penalty"),
    ({"seed": 2**63}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"stop": ""}, "stop"),
    ({"stop": ["a", ""]}, "stop"),
    ({"stop": "x" * 1_000_000}, "stop"),
    ({"stop": 5}, "stop"),
    ({"stop": [5]}, "stop"),
    ({"stop_token_ids": [-1]}, "stop_token_ids"),
    ({"stop_token_ids": [2**32]}, "stop_token_ids"),
    ({"stop_token_ids": ["1"]}, "stop_token_ids"),
    ({"stop_token_ids": [True]}, "stop_token_ids"),
    ({"stop_token_ids": 5}, "stop_token_ids"),
    ({"allowed_token_ids": [-1]}, "allowed_token_ids"),
    ({"allowed_token_ids": [1.0]}, "allowed_token_ids"),
    ({"logit_bias": []}, "logit_bias"),
    ({"logit_bias": {"-1": 1}}, "logit_bias"),
    ({"logit_bias": {"word": 1}}, "logit_bias"),
    ({"logit_bias": {"٣": 1}}, "logit_bias"),
    ({"logit_bias": {"9999999999": 1}}, "logit_bias"),
    ({"logit_bias": {"1": 101}}, "logit_bias.1"),
    ({"logit_bias": {"1": None}}, "logit_bias"),
    ({"logit_bias": {"1": 1, "01": 2}}, "logit_bias"),
    ({"logit_bias": {str(key): 1 for key in range(100_000)}}, "logit_bias"),
    ({"ignore_eos": 1}, "ignore_eos"),
    ({"skip_special_tokens": "yes"}, "skip_special_tokens"),
    ({"include_stop_str_in_output": 0}, "include_stop_str_in_output"),
    ({"stream": "true"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": []}, "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"chat_template": "{{ x }}"}, "chat_template"),
    ({"chat_template_kwargs": {"chat_template": "{{ x }}"}}, "chat_template_kwargs.chat_template"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs"),
    ({"kv_transfer_params": {}}, "kv_transfer_params"),
    ({"prompt_embeds": "AAAA"}, "prompt_embeds"),
    ({"lora_path": "/tmp/lora"}, "lora_path"),
    ({"priority": 0}, "priority"),
    ({"cache_salt": "x"}, "cache_salt"),
    ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
    ({"reasoning_effort": ""}, "reasoning_effort"),
    ({"reasoning_effort": 5}, "reasoning_effort"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {}}, "response_format.type"),
    ({"response_format": "json"}, "response_format"),
]

UNSUPPORTED_CHAT_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"best_of": 2}, "best_of"),
    ({"logprobs": True}, "logprobs"),
    ({"logprobs": True, "top_logprobs": 5}, "logprobs"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
    ({"structured_outputs": {"choice": ["a"]}}, "structured_outputs"),
    ({"guided_json": {}}, "guided_json"),
    ({"guided_regex": "(a+)+b"}, "guided_regex"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"audio": {"voice": "alloy"}}, "audio"),
    ({"prompt_logprobs": 1}, "prompt_logprobs"),
    *(
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, part]}]}, "messages[0].content[1]")
        for part in (
            {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            {"type": "file", "file": {"file_id": "x"}},
            {"type": "video_url", "video_url": {"url": "http://127.0.0.1:9/x.mp4"}},
        )
    ),
]

COMPLETION_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"model": ""}, "model"),
    ({"prompt": None}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [[]]}, "prompt"),
    ({"prompt": 5}, "prompt"),
    ({"prompt": [1, -1]}, "prompt"),
    ({"prompt": [1, 2**32]}, "prompt"),
    ({"prompt": [1, "a"]}, "prompt"),
    ({"prompt": [[1, True]]}, "prompt"),
    ({"prompt": [1.5]}, "prompt"),
    ({"prompt": {"text": "x"}}, "prompt"),
    ({"prompt": [1], "add_special_tokens": True}, "add_special_tokens"),
    ({"logprobs": -1}, "logprobs"),
    ({"logprobs": 21}, "logprobs"),
    ({"logprobs": True}, "logprobs"),
    ({"max_tokens": 0}, "max_tokens"),
]

UNSUPPORTED_COMPLETION_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ["a", "b"]}, "prompt"),
    ({"prompt": ["a"] * 10_000}, "prompt"),
    ({"prompt": [[1], [2]]}, "prompt"),
    ({"logprobs": 0}, "logprobs"),
    ({"echo": True}, "echo"),
    ({"suffix": "end"}, "suffix"),
    ({"best_of": 3}, "best_of"),
]


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
async def test_bad_bodies(frontend: Frontend, service: ScriptedTextService, body: bytes, message: str) -> None:
    """A body that is not one clear JSON object gets 400 and says what is wrong."""
    response = await frontend.client.post(CHAT, content=body, headers=JSON)
    assert response.status_code == 400
    assert message in error_of(response)["message"]
    assert service.requests == []


def _case_id(value: object) -> str | None:
    return repr(value)[:60] if isinstance(value, dict) else ""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("fields", "param"), CHAT_FIELDS, ids=_case_id)
async def test_bad_chat_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str, stream: bool
) -> None:
    """A wrong field of a chat request gets 400 naming it, streaming or not."""
    if stream and "stream_options" in fields:
        fields = {"stream": True, "stream_options": {"include_usage": "yes"}}
        param = "stream_options.include_usage"
    response = await frontend.client.post(CHAT, json=chat() | {"stream": stream} | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None)
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED_CHAT_FIELDS, ids=_case_id)
async def test_unsupported_chat_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """What this version cannot serve gets 400 with the code `unsupported`."""
    response = await frontend.client.post(CHAT, json=chat() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, "unsupported")
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), COMPLETION_FIELDS, ids=_case_id)
async def test_bad_completion_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """A wrong field of a completion request gets 400 naming it."""
    response = await frontend.client.post(COMPLETIONS, json=completion() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None)
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED_COMPLETION_FIELDS, ids=_case_id)
async def test_unsupported_completion_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """What this version cannot serve gets 400 with the code `unsupported`."""
    response = await frontend.client.post(COMPLETIONS, json=completion() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, "unsupported")
    assert service.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"},
        {"no_such_field": [1, {"a": None}]},
        {"tools": None, "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"]},
        {"logprobs": False, "best_of": 1, "stop": None, "echo": False, "n": None},
        {"max_tokens": 5, "max_completion_tokens": 5},
    ],
    ids=_case_id,
)
async def test_harmless_fields_are_served(frontend: Frontend, fields: dict[str, Any]) -> None:
    """Unknown fields, those without effect here, and null are accepted."""
    response = await frontend.client.post(CHAT, json=chat() | fields)
    assert response.status_code == 200
