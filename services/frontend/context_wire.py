"""Context policies and reports, to and from their messages."""

from __future__ import annotations

from services.frontend.context_policy import ContextPolicy, ContextReport
from streamomni.text.v1 import chat_pb2, text_pb2

_KINDS: dict[ContextPolicy, chat_pb2.ContextPolicy.Kind.ValueType] = {
    "error": chat_pb2.ContextPolicy.KIND_ERROR,
    "sliding_window": chat_pb2.ContextPolicy.KIND_SLIDING_WINDOW,
    "summarize": chat_pb2.ContextPolicy.KIND_SUMMARIZE,
}
_POLICIES: dict[int, ContextPolicy] = {kind: policy for policy, kind in _KINDS.items()}


def context_policy(policy: ContextPolicy | None, summary: str) -> chat_pb2.ContextPolicy | None:
    """The message of a policy; None leaves it unset."""
    return None if policy is None else chat_pb2.ContextPolicy(kind=_KINDS[policy], summary=summary)


def context_report(message: text_pb2.ContextReport) -> ContextReport:
    """Read a report. A policy that is unknown here left something out, as a sliding window does."""
    return ContextReport(
        _POLICIES.get(message.policy, "sliding_window"),
        message.dropped_messages,
        message.dropped_tokens,
        message.summary,
        message.summary_usage.prompt_tokens,
        message.summary_usage.completion_tokens,
        message.unsummarized_messages,
    )
