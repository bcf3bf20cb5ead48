"""Context policies and reports, from and to their messages."""

from __future__ import annotations

from services.chassis.errors import InvalidRequest
from services.tokenizer.context_policy import ContextPolicy, ContextPolicyKind
from services.tokenizer.events import ContextReport
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

MAX_SUMMARY_CHARS = 65536
_KIND_OF_MESSAGE = {
    chat_pb2.ContextPolicy.KIND_UNSPECIFIED: ContextPolicyKind.ERROR,
    chat_pb2.ContextPolicy.KIND_ERROR: ContextPolicyKind.ERROR,
    chat_pb2.ContextPolicy.KIND_SLIDING_WINDOW: ContextPolicyKind.SLIDING_WINDOW,
    chat_pb2.ContextPolicy.KIND_SUMMARIZE: ContextPolicyKind.SUMMARIZE,
}
_MESSAGE_OF_KIND = {kind: message for message, kind in _KIND_OF_MESSAGE.items()}


def context_policy(message: chat_pb2.ContextPolicy) -> ContextPolicy:
    """Read a policy.

    Raises:
        InvalidRequest: its kind is unknown, or its summary too long or for another kind.
    """
    kind = _KIND_OF_MESSAGE.get(message.kind)
    if kind is None:
        raise InvalidRequest(
            f"context_policy.kind {message.kind} is unknown; send ERROR, SLIDING_WINDOW or SUMMARIZE",
            param="context_policy",
        )
    if message.summary and kind is not ContextPolicyKind.SUMMARIZE:
        raise InvalidRequest(
            "context_policy.summary goes with kind SUMMARIZE only; leave it out", param="context_policy"
        )
    if len(message.summary) > MAX_SUMMARY_CHARS:
        raise InvalidRequest(
            f"context_policy.summary has {len(message.summary)} characters; at most {MAX_SUMMARY_CHARS} are allowed",
            param="context_policy",
        )
    return ContextPolicy(kind, message.summary)


def context_report(report: ContextReport) -> text_pb2.ContextReport:
    """The message of a report."""
    message = text_pb2.ContextReport(
        policy=_MESSAGE_OF_KIND[report.policy],
        dropped_messages=report.dropped_messages,
        dropped_tokens=report.dropped_tokens,
        summary=report.summary,
        unsummarized_messages=report.unsummarized_messages,
    )
    if (usage := report.summary_usage) is not None:
        message.summary_usage.CopyFrom(
            sampling_pb2.Usage(
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_tokens=usage.cached_tokens,
                reasoning_tokens=usage.reasoning_tokens,
            )
        )
    return message
