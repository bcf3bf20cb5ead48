"""LlamaIndex's client of servers that are like OpenAI's."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Literal

import openai
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from scenarios import (
    BASE_URL,
    ENDLESS,
    FEW_TOKENS,
    MAX_TOKENS,
    MODEL,
    PIECES_BEFORE_LEAVING,
    PROXY_BASE_URL,
    QUESTION,
    RETRIES,
    TOO_MANY_TOKENS,
    TOOL_DESCRIPTION,
    TOOL_NAME,
    TOOL_QUESTION,
    TOOL_RESULT,
    UNKNOWN,
    Place,
    called,
    serve,
    told,
)

_MESSAGES = [ChatMessage(role="user", content=QUESTION)]


class _Weather(BaseModel):
    city: Literal["Paris", "Berlin"]


def _weather(city: str) -> str:
    return TOOL_RESULT


_TOOL = FunctionTool.from_defaults(_weather, name=TOOL_NAME, description=TOOL_DESCRIPTION, fn_schema=_Weather)


def _model(name: str = MODEL, **options: Any) -> OpenAILike:
    options = {"api_base": BASE_URL, "max_tokens": MAX_TOKENS, "max_retries": 0, **options}
    return OpenAILike(
        model=name,
        api_key="none",
        is_chat_model=True,
        is_function_calling_model=True,
        should_use_structured_outputs=True,
        temperature=0,
        **options,
    )


def _proxied(**options: Any) -> OpenAILike:
    return _model(api_base=PROXY_BASE_URL, max_retries=RETRIES, **options)


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


def invalid() -> Mapping[str, Any]:
    """Ask for more tokens than fit."""
    try:
        return {"text": _model(max_tokens=TOO_MANY_TOKENS).chat(_MESSAGES).message.content}
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


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    return {"value": _model().structured_predict(Place, PromptTemplate(QUESTION)).model_dump()}


def call() -> Mapping[str, Any]:
    """Ask for a call of a tool."""
    model = _model()
    response = model.chat_with_tools([_TOOL], user_msg=TOOL_QUESTION, tool_required=True)
    (made,) = model.get_tool_calls_from_response(response)
    return called(made.tool_name, made.tool_kwargs)


def call_stream() -> Mapping[str, Any]:
    """Ask for a call of a named tool in pieces, and let the client put it together."""
    model = _model()
    responses = list(model.stream_chat_with_tools([_TOOL], user_msg=TOOL_QUESTION, tool_choice=TOOL_NAME))
    (made,) = model.get_tool_calls_from_response(responses[-1])
    return called(made.tool_name, made.tool_kwargs, pieces=len(responses))


def round_trip() -> Mapping[str, Any]:
    """Give a call's result back to the model."""
    model = _proxied(max_tokens=MAX_TOKENS)
    question = ChatMessage(role="user", content=TOOL_QUESTION)
    response = model.chat_with_tools([_TOOL], chat_history=[question], tool_required=True)
    (made,) = model.get_tool_calls_from_response(response)
    result = ChatMessage(
        role="tool",
        content=_TOOL.call(**made.tool_kwargs).content,
        additional_kwargs={"tool_call_id": made.tool_id},
    )
    answer = _proxied(max_tokens=FEW_TOKENS).chat_with_tools(
        [_TOOL], chat_history=[question, response.message, result], tool_choice="none"
    )
    return called(made.tool_name, made.tool_kwargs, text=answer.message.content)


def retry() -> Mapping[str, Any]:
    """Ask with retries allowed."""
    return {"text": _proxied(max_tokens=FEW_TOKENS).chat(_MESSAGES).message.content}


def refused() -> Mapping[str, Any]:
    """Ask in vain with retries allowed."""
    try:
        return {"text": _proxied(max_tokens=TOO_MANY_TOKENS).chat(_MESSAGES).message.content}
    except openai.APIStatusError as failure:
        return told(failure)


if __name__ == "__main__":
    serve(chat, stream, error, invalid, leave, structured, call, call_stream, round_trip, retry, refused)
