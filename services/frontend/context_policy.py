"""What a caller wants done when a chat does not fit the model's context, and what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from services.chassis.errors import InvalidRequest
from services.frontend.fields import Fields, shown

ContextPolicy = Literal["error", "sliding_window", "summarize"]
CONTEXT_POLICIES: tuple[ContextPolicy, ...] = get_args(ContextPolicy)


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What was left out of a chat to make it fit.

    Attributes:
        dropped_messages: number of messages left out, the oldest that are no system messages.
        dropped_tokens: prompt tokens that they would have taken.
        summary: of all that was left out, now and before; "" without.
        summary_prompt_tokens: read by the model to write the summary.
        summary_completion_tokens: written by it.
        unsummarized_messages: those of dropped_messages that the summary holds in part or not at all.
    """

    policy: ContextPolicy
    dropped_messages: int
    dropped_tokens: int
    summary: str = ""
    summary_prompt_tokens: int = 0
    summary_completion_tokens: int = 0
    unsummarized_messages: int = 0


def parse_context_policy(fields: Fields) -> ContextPolicy | None:
    """Read `context_policy`; None where it is absent.

    Raises:
        InvalidRequest: it is none of the policies.
    """
    value = fields.value("context_policy")
    if value is None:
        return None
    if value not in CONTEXT_POLICIES:
        raise InvalidRequest(
            f"context_policy must be one of {', '.join(CONTEXT_POLICIES)}, but it is {shown(value)}",
            param=fields.path("context_policy"),
        )
    return cast(ContextPolicy, value)


def context_object(report: ContextReport) -> dict[str, Any]:
    """Return the member `context` of an answer. It is no part of OpenAI's shapes."""
    told: dict[str, Any] = {
        "policy": report.policy,
        "dropped_messages": report.dropped_messages,
        "dropped_tokens": report.dropped_tokens,
    }
    if report.summary:
        told["summary"] = report.summary
    if report.summary_prompt_tokens:
        told["summary_usage"] = {
            "prompt_tokens": report.summary_prompt_tokens,
            "completion_tokens": report.summary_completion_tokens,
            "total_tokens": report.summary_prompt_tokens + report.summary_completion_tokens,
        }
    if report.unsummarized_messages:
        told["unsummarized_messages"] = report.unsummarized_messages
    return told
