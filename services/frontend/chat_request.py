"""A valid chat request, from JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import orjson

from services.chassis.errors import InvalidRequest
from services.frontend.context_policy import ContextPolicy, parse_context_policy
from services.frontend.fields import UINT32, Fields
from services.frontend.messages import Message, parse_messages
from services.frontend.model_name import parse_model
from services.frontend.params import (
    Delivery,
    Output,
    Sampling,
    check_labels,
    parse_delivery,
    parse_output,
    parse_sampling,
)
from services.frontend.refusals import refuse, refuse_in_chat
from services.frontend.tools import Tools, parse_tools

MAX_TOP_LOGPROBS = 20
MAX_EFFORT_CHARS = 32
# Variables that are set by fields of their own, or that would replace the template.
_OWN_TEMPLATE_KWARGS = ("add_generation_prompt", "chat_template", "continue_final_message", "messages", "tools")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request of /v1/chat/completions whose every field is valid by itself.

    Attributes:
        context_summary: of messages before the first, with the policy `summarize`; this service's own, never the
            caller's.
    """

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling
    output: Output
    delivery: Delivery
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False
    chat_template_kwargs_json: str | None = None
    reasoning_effort: str | None = None
    tools: Tools | None = None
    context_policy: ContextPolicy | None = None
    context_summary: str = ""


def parse_chat_request(body: dict[str, Any]) -> ChatRequest:
    """Make a request from the body's object.

    Raises:
        InvalidRequest: a field is missing, of a wrong type or out of range.
        Unsupported: this version cannot serve it.
    """
    fields = Fields(body)
    model = parse_model(fields)
    refuse(fields)
    refuse_in_chat(fields)
    check_labels(fields)
    continue_final_message = fields.boolean("continue_final_message") or False
    add_generation_prompt = fields.boolean("add_generation_prompt")
    if continue_final_message and add_generation_prompt:
        raise InvalidRequest(
            "continue_final_message and add_generation_prompt exclude each other; set one of them",
            param="continue_final_message",
        )
    return ChatRequest(
        model=model,
        messages=parse_messages(fields),
        sampling=replace(parse_sampling(fields, _parse_max_tokens(fields)), logprobs=_parse_logprobs(fields)),
        output=parse_output(fields),
        delivery=parse_delivery(fields),
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        chat_template_kwargs_json=_parse_template_kwargs(fields),
        reasoning_effort=_parse_effort(fields),
        tools=parse_tools(fields),
        context_policy=parse_context_policy(fields),
    )


def _parse_max_tokens(fields: Fields) -> int | None:
    old = fields.integer("max_tokens", 1, UINT32)
    new = fields.integer("max_completion_tokens", 1, UINT32)
    if old is not None and new is not None and old != new:
        raise InvalidRequest(
            f"max_tokens ({old}) and max_completion_tokens ({new}) differ; set one of them", param="max_tokens"
        )
    return old if new is None else new


def _parse_logprobs(fields: Fields) -> int | None:
    """Number of alternatives a token; None without log probabilities."""
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    if wanted:
        return top or 0
    if top is not None:
        raise InvalidRequest("top_logprobs needs logprobs: true; set it, or leave both out", param="top_logprobs")
    return None


def _parse_template_kwargs(fields: Fields) -> str | None:
    kwargs = fields.nested("chat_template_kwargs")
    if kwargs is None:
        return None
    for name in _OWN_TEMPLATE_KWARGS:
        if name in kwargs:
            raise InvalidRequest(
                f"chat_template_kwargs must not hold {name}; leave it out", param=f"chat_template_kwargs.{name}"
            )
    return orjson.dumps(fields.value("chat_template_kwargs")).decode()


def _parse_effort(fields: Fields) -> str | None:
    effort = fields.string("reasoning_effort", MAX_EFFORT_CHARS)
    if effort == "":
        raise InvalidRequest("reasoning_effort must not be empty; leave it out", param="reasoning_effort")
    return effort
