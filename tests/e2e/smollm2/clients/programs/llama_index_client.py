"""LlamaIndex's client of servers that are like OpenAI's."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import openai
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from scenarios import BASE_URL, ENDLESS, MAX_TOKENS, MODEL, PIECES_BEFORE_LEAVING, QUESTION, UNKNOWN, serve, told

_MESSAGES = [ChatMessage(role="user", content=QUESTION)]


def _model(name: str = MODEL, **options: Any) -> OpenAILike:
    options = {"max_tokens": MAX_TOKENS, **options}
    return OpenAILike(
        model=name, api_base=BASE_URL, api_key="none", is_chat_model=True, temperature=0, max_retries=0, **options
    )


def chat() -> Mapping[str, Any]:
    """Ask for an answer in one piece."""
    return {"text": _model().chat(_MESSAGES).message.content}


def stream() -> Mapping[str, Any]:
    """Ask for an answer in pieces."""
    return {"pieces": [response.delta for response in _model().stream_chat(_MESSAGES)]}


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    try:
        return {"text": _model(UNKNOWN).chat(_MESSAGES).message.content}
    except openai.APIStatusError as failure:
        return told(failure)


def leave() -> Mapping[str, Any]:
    """Leave a stream after some pieces."""
    length, bias = ENDLESS["max_tokens"], {"logit_bias": ENDLESS["logit_bias"]}
    responses = _model(max_tokens=length, additional_kwargs=bias).stream_chat(_MESSAGES)
    seen = [next(responses).delta for _ in range(PIECES_BEFORE_LEAVING)]
    responses.close()
    # It closes no response itself; that is left to the garbage collector.
    gc.collect()
    return {"pieces": seen}


if __name__ == "__main__":
    serve({"chat": chat, "stream": stream, "error": error, "leave": leave})
