"""The official openai client against the running service."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.e2e.service import Service

QUESTION: list[openai.types.chat.ChatCompletionMessageParam] = [
    {"role": "user", "content": "What is the capital of France?"}
]


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    """A client with the service as its base URL."""
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_chat(client: openai.OpenAI, service: Service) -> None:
    """A chat is answered, with usage and finish reason."""
    answer = client.chat.completions.create(model=service.model, messages=QUESTION, temperature=0, max_tokens=30)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_streamed_chat(client: openai.OpenAI, service: Service) -> None:
    """A streamed chat gives the same text in several chunks, and usage in the last."""
    whole = client.chat.completions.create(model=service.model, messages=QUESTION, temperature=0, max_tokens=30)
    chunks = list(
        client.chat.completions.create(
            model=service.model,
            messages=QUESTION,
            temperature=0,
            max_tokens=30,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert sum(1 for chunk in chunks if chunk.choices and chunk.choices[0].delta.content) > 3
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_completion_and_stop_string(client: openai.OpenAI, service: Service) -> None:
    """A completion goes on with its prompt, streamed as well, and a stop string ends it without being shown."""
    prompt = "The days of the week are Monday, Tuesday,"
    whole = client.completions.create(model=service.model, prompt=prompt, temperature=0, max_tokens=20, stop=["Friday"])
    assert "Wednesday" in whole.choices[0].text
    assert "Friday" not in whole.choices[0].text
    assert whole.choices[0].finish_reason == "stop"
    streamed = client.completions.create(
        model=service.model, prompt=prompt, temperature=0, max_tokens=20, stop=["Friday"], stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in streamed if chunk.choices) == whole.choices[0].text


def test_models(client: openai.OpenAI, service: Service) -> None:
    """The model is listed, and an unknown one is refused as OpenAI refuses it."""
    assert [model.id for model in client.models.list()] == [service.model]
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="gpt-unknown", messages=QUESTION)
    assert refusal.value.code == "model_not_found"
