"""Requests that real vLLM must answer with chosen token ids: a grammar allows nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
from tokenizers import Tokenizer

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.service import Service

PROMPT = [1, 500, 501, 502]
END = 2


def grammar(token_ids: Sequence[int]) -> str:
    """A grammar, in llguidance's form of Lark, of exactly these ids."""
    return "start: " + " ".join(f"<[{token_id}]>" for token_id in token_ids)


@dataclass
class Whole:
    """An answer in one piece or put together from a stream."""

    text: str = ""
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)
    """Each token by itself, as its log probabilities tell it."""
    deltas: list[str] = field(default_factory=list)
    """Texts of a stream's chunks with text."""


def body(service: Service, token_ids: Sequence[int], **fields: Any) -> dict[str, Any]:
    """The body of a completion that says these ids; `ignore_eos` lets it say the end token too."""
    return {
        "model": service.model,
        "prompt": PROMPT,
        "max_tokens": len(token_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "structured_outputs": {"grammar": grammar(token_ids)},
        **fields,
    }


def in_one_piece(service: Service, token_ids: Sequence[int], **fields: Any) -> Whole:
    """The answer over HTTP in one piece."""
    response = httpx.post(f"{service.url}/v1/completions", json=body(service, token_ids, **fields), timeout=60)
    assert response.status_code == 200, response.text
    answer = response.json()
    (choice,) = answer["choices"]
    return Whole(
        choice["text"],
        choice["finish_reason"],
        choice.get("stop_reason"),
        answer["usage"]["completion_tokens"],
        choice["logprobs"]["tokens"],
    )


def streamed(service: Service, token_ids: Sequence[int], **fields: Any) -> Whole:
    """The answer over HTTP as a stream; a chunk without text tells of log probabilities or of the end."""
    asked = body(service, token_ids, stream=True, stream_options={"include_usage": True}, **fields)
    with httpx.stream("POST", f"{service.url}/v1/completions", json=asked, timeout=60) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    whole = Whole(completion_tokens=json.loads(events.pop())["usage"]["completion_tokens"])
    for event in events:
        (choice,) = json.loads(event)["choices"]
        assert whole.finish_reason is None, "a chunk after the end"
        if choice["text"]:
            whole.deltas.append(choice["text"])
        whole.tokens += choice["logprobs"]["tokens"] if choice["logprobs"] else []
        whole.finish_reason, whole.stop_reason = choice["finish_reason"], choice.get("stop_reason")
    whole.text = "".join(whole.deltas)
    return whole


@dataclass
class Called:
    """What came over gRPC."""

    deltas: list[text_pb2.Delta]
    finished: text_pb2.Finished

    @property
    def text(self) -> str:
        """All text."""
        return "".join(delta.text for delta in self.deltas)

    @property
    def token_ids(self) -> list[int]:
        """All ids."""
        return [token_id for delta in self.deltas for token_id in delta.token_ids]


def over_grpc(
    service: Service,
    token_ids: Sequence[int],
    *,
    prompt: Sequence[int] = PROMPT,
    sampling: dict[str, Any] | None = None,
    **fields: Any,
) -> Called:
    """The answer of the text service to a prompt of ids."""
    params = sampling_pb2.SamplingParams(max_tokens=len(token_ids), ignore_eos=True, **(sampling or {}))
    params.structured_output.grammar = grammar(token_ids)
    tokens = text_pb2.TokenPrompt(token_ids=prompt)
    request = text_pb2.GenerateRequest(tokens=tokens, sampling_params=params, **fields)
    with grpc.insecure_channel(service.tokenizer) as channel:
        events = list(text_pb2_grpc.TextServiceStub(channel).Generate(request))
    (finished,) = [event.finished for event in events if event.HasField("finished")]
    return Called([event.delta for event in events if event.HasField("delta")], finished)


def reference_of(model: Path) -> Tokenizer:
    """Hugging Face's tokenizer of a model: the oracle."""
    return Tokenizer.from_file(str(model / "tokenizer.json"))


def ids_of(reference: Tokenizer, *texts: str) -> list[int]:
    """The ids of texts, each encoded by itself."""
    return [token_id for text in texts for token_id in reference.encode(text, add_special_tokens=False).ids]
