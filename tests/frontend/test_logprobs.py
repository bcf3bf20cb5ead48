"""Log probabilities in OpenAI's shapes, whole and streamed, before a scripted text service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from services.frontend.logprobs import TokenLogprob, chat_logprobs, completion_logprobs, moved
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, events

# " 🦙" in three tokens, as Qwen3 has it, with the alternatives of each.
LLAMA = [
    TokenLogprob(b" \xf0\x9f", -0.5, 0, [(b" \xf0\x9f", -0.5), (b" a", -1.5)]),
    TokenLogprob(b"\xa6", -0.25, 1, [(b"\xa6", -0.25), (b"\xa7", -3.0)]),
    TokenLogprob(b"\x99", float("-inf"), 1, [(b"x", 0.0), (b"y", -2.0)]),
]


def message(tokens: list[TokenLogprob], top_count: int = 2) -> text_pb2.TextLogprobs:
    """The same as the text service sends it."""
    return text_pb2.TextLogprobs(
        logprobs=sampling_pb2.Logprobs(
            logprobs=[token.logprob for token in tokens if token.logprob is not None],
            ranks=[1] * len(tokens),
            top_count=top_count,
            top_token_ids=range(top_count * len(tokens)),
            top_logprobs=[logprob for token in tokens for _, logprob in token.top],
        ),
        token_bytes=[token.token for token in tokens],
        top_token_bytes=[alternative for token in tokens for alternative, _ in token.top],
        text_offsets=[token.text_offset for token in tokens],
    )


async def llama(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say a llama: the first token with its space, the others when the character is whole; then the end token."""
    start = started(request)
    if request.echo:
        start.prompt_text = "Hi you"
    if request.sampling_params.HasField("prompt_logprobs"):
        start.prompt_first_token_bytes = b"Hi"
        start.prompt_logprobs.CopyFrom(message([TokenLogprob(b" you", -4.0, 2, [(b" all", -1.0), (b"!", -2.0)])]))
    yield start
    asked = request.sampling_params.HasField("logprobs")
    end = TokenLogprob(b"<|end|>", -0.125, 2, [(b"<|end|>", -0.125), (b"!", -2.5)])
    for ids, text, tokens in (([1], " ", LLAMA[:1]), ([2, 3], "🦙", LLAMA[1:]), ([4], "", [end])):
        yield text_pb2.Delta(token_ids=ids, text=text, logprobs=message(tokens) if asked else None)
    yield finished(4)


@pytest.fixture(autouse=True)
def scripted(service: ScriptedTextService) -> None:
    """The service says a llama."""
    service.script = llama


async def whole(frontend: Frontend, path: str, request: dict[str, Any]) -> dict[str, Any]:
    """The only choice of an answer in one piece."""
    response = await frontend.client.post(path, json=request)
    assert response.status_code == 200, response.text
    (choice,) = response.json()["choices"]
    found: dict[str, Any] = choice
    return found


async def streamed(frontend: Frontend, path: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices of a stream's chunks."""
    chunks = events((await frontend.client.post(path, json=request | {"stream": True})).text)
    assert chunks.pop() == "[DONE]"
    return [choice for chunk in chunks for choice in chunk["choices"]]


def test_chat_object() -> None:
    """`bytes` are the token's own, `token` is what they decode to; there is no infinity in JSON."""
    assert chat_logprobs(LLAMA[1:]) == {
        "content": [
            {
                "token": "\ufffd",
                "logprob": -0.25,
                "bytes": [0xA6],
                "top_logprobs": [
                    {"token": "\ufffd", "logprob": -0.25, "bytes": [0xA6]},
                    {"token": "\ufffd", "logprob": -3.0, "bytes": [0xA7]},
                ],
            },
            {
                "token": "\ufffd",
                "logprob": -9999.0,
                "bytes": [0x99],
                "top_logprobs": [
                    {"token": "x", "logprob": 0.0, "bytes": [0x78]},
                    {"token": "y", "logprob": -2.0, "bytes": [0x79]},
                ],
            },
        ],
        "refusal": None,
    }


def test_completion_object() -> None:
    """The chosen token is among the alternatives; of those that look alike the most likely one counts; a prompt's first
    token has no number."""
    first = TokenLogprob(b"Hi", None, 0, ())
    assert completion_logprobs([first, *moved(LLAMA, 2)]) == {
        "tokens": ["Hi", " \ufffd", "\ufffd", "\ufffd"],
        "token_logprobs": [None, -0.5, -0.25, -9999.0],
        "top_logprobs": [
            None,
            {" \ufffd": -0.5, " a": -1.5},
            {"\ufffd": -0.25},
            {"x": 0.0, "y": -2.0, "\ufffd": -9999.0},
        ],
        "text_offset": [0, 2, 3, 3],
    }


async def test_chat(frontend: Frontend, service: ScriptedTextService) -> None:
    """All tokens are told once, each in the chunk of its text; the end token in a chunk without."""
    request = chat(logprobs=True, top_logprobs=2)
    choice = await whole(frontend, CHAT, request)
    assert service.requests[-1].sampling_params.logprobs == 2
    assert choice["message"]["content"] == " 🦙"
    content = choice["logprobs"]["content"]
    assert [token["token"] for token in content] == [" \ufffd", "\ufffd", "\ufffd", "<|end|>"]
    chunks = await streamed(frontend, CHAT, request)
    told = [(chunk["delta"], chunk["logprobs"]["content"]) for chunk in chunks if chunk.get("logprobs")]
    assert told == [
        ({"content": " "}, content[:1]),
        ({"content": "🦙"}, content[1:3]),
        ({"content": ""}, content[3:]),
    ]


async def test_chat_without_alternatives(frontend: Frontend, service: ScriptedTextService) -> None:
    """logprobs without top_logprobs asks for the tokens alone; top_logprobs 0 is the same."""
    for request in (chat(logprobs=True), chat(logprobs=True, top_logprobs=0)):
        await whole(frontend, CHAT, request)
        params = service.requests[-1].sampling_params
        assert params.HasField("logprobs") and params.logprobs == 0
    assert (await whole(frontend, CHAT, chat(logprobs=False)))["logprobs"] is None
    assert not service.requests[-1].sampling_params.HasField("logprobs")


async def test_completion(frontend: Frontend) -> None:
    """The stream's columns put together are those of the whole."""
    choice = await whole(frontend, COMPLETIONS, completion(logprobs=2))
    assert choice["logprobs"]["text_offset"] == [0, 1, 1, 2]
    assert choice["logprobs"]["tokens"] == [" \ufffd", "\ufffd", "\ufffd", "<|end|>"]
    chunks = await streamed(frontend, COMPLETIONS, completion(logprobs=2))
    for name, column in choice["logprobs"].items():
        assert [one for chunk in chunks if chunk["logprobs"] for one in chunk["logprobs"][name]] == column


async def test_echo(frontend: Frontend, service: ScriptedTextService) -> None:
    """The prompt comes first, in a chunk of its own when streamed, and what follows counts on from it."""
    request = completion(echo=True, logprobs=2)
    choice = await whole(frontend, COMPLETIONS, request)
    asked = service.requests[-1]
    assert asked.echo and asked.sampling_params.prompt_logprobs == 2
    assert choice["text"] == "Hi you 🦙"
    assert choice["logprobs"]["tokens"][:3] == ["Hi", " you", " \ufffd"]
    assert choice["logprobs"]["token_logprobs"][:3] == [None, -4.0, -0.5]
    assert choice["logprobs"]["top_logprobs"][1] == {" all": -1.0, "!": -2.0, " you": -4.0}
    assert choice["logprobs"]["text_offset"] == [0, 2, 6, 7, 7, 8]
    chunks = await streamed(frontend, COMPLETIONS, request)
    assert chunks[0]["text"] == "Hi you"
    for name, column in choice["logprobs"].items():
        assert [one for chunk in chunks if chunk["logprobs"] for one in chunk["logprobs"][name]] == column


async def test_echo_without_logprobs(frontend: Frontend, service: ScriptedTextService) -> None:
    """The prompt alone is asked for, and no numbers are told."""
    choice = await whole(frontend, COMPLETIONS, completion(echo=True, n=1))
    assert (choice["text"], choice["logprobs"]) == ("Hi you 🦙", None)
    assert not service.requests[-1].sampling_params.HasField("prompt_logprobs")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_prompt_alone(frontend: Frontend, service: ScriptedTextService, stream: bool) -> None:
    """With echo and max_tokens 0 the engine is asked for one token, of which nothing is told or counted."""
    request = completion(echo=True, logprobs=2, max_tokens=0)
    if stream:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = events((await frontend.client.post(COMPLETIONS, json=request | options)).text)[:-1]
        usage = chunks[-1]["usage"]
        told, end = [choice for chunk in chunks for choice in chunk["choices"]]
        assert end["text"] == ""
    else:
        body = (await frontend.client.post(COMPLETIONS, json=request)).json()
        usage = body["usage"]
        (told,) = (end,) = body["choices"]
    assert service.requests[-1].sampling_params.max_tokens == 1
    assert (told["text"], end["finish_reason"]) == ("Hi you", "length")
    assert told["logprobs"]["tokens"] == ["Hi", " you"]
    assert usage["completion_tokens"] == 0


async def test_a_large_echo_is_no_slow_reader(frontend: Frontend, service: ScriptedTextService) -> None:
    """More than waits for a slow reader may come of a prompt at once; what follows at once is delivered too."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        start = started(request)
        start.prompt_text = "word " * 200_000
        yield start
        for position in range(50):
            yield text_pb2.Delta(token_ids=[position], text="more ")
        yield finished(50)

    service.script = script
    chunks = await streamed(frontend, COMPLETIONS, completion(echo=True))
    assert "".join(chunk["text"] for chunk in chunks) == "word " * 200_000 + "more " * 50
