"""Task presets on the running service."""

from __future__ import annotations

from typing import Any

import grpc
import httpx
import pytest

from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.e2e.service import Service

TEXT = "The sea was calm, and the boat"
VARIABLES = {"translate": {"target_language": "French"}}
SHIPPED = ("chat", "continue", "translate", "summarize", "rewrite", "code")


def ask(service: Service, **fields: Any) -> dict[str, Any]:
    """The answer to the text, of few tokens."""
    messages = [{"role": "user", "content": TEXT}]
    body = {"model": service.model, "messages": messages, "temperature": 0, "max_tokens": 6, **fields}
    response = httpx.post(f"{service.url}/v1/chat/completions", json=body, timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def rendered_tokens(service: Service, messages: list[tuple[str, str]], **fields: Any) -> int:
    """Number of tokens of the prompt that these messages become."""
    chat = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role=role, text=text) for role, text in messages])
    chat.continue_final_message = fields.get("continue_final_message", False)
    with grpc.insecure_channel(service.tokenizer) as channel:
        request = text_pb2.RenderChatRequest(chat=chat)
        return len(text_pb2_grpc.TextServiceStub(channel).RenderChat(request).token_ids)


@pytest.mark.parametrize("name", SHIPPED)
def test_each_is_served(service: Service, name: str) -> None:
    """The prompt of each preset that comes along is what its listed texts make of the message, and it is answered."""
    preset = httpx.get(f"{service.url}/v1/presets/{name}").json()
    values = VARIABLES.get(name, {})
    answer = ask(service, preset=name, preset_variables=values)
    assert answer["choices"][0]["message"]["content"]
    filled = {"input": TEXT} | {each["name"]: each.get("default") for each in preset["variables"]} | values
    messages = [("system", preset["system"]), ("user", preset["user"]), ("assistant", preset["opening"])]
    expected = [(role, _filled(text, filled)) for role, text in messages if text is not None]
    opened = preset["opening"] is not None
    tokens = rendered_tokens(service, expected, continue_final_message=opened)
    assert answer["usage"]["prompt_tokens"] == tokens
    assert tokens != ask(service, max_tokens=1)["usage"]["prompt_tokens"]


def test_continue_adds_to_the_text(service: Service) -> None:
    """An answer to `continue` is what the model adds to the text, which it does not repeat."""
    text = ask(service, preset="continue", max_tokens=12)["choices"][0]["message"]["content"]
    assert text.startswith(" ") and TEXT not in text


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text
