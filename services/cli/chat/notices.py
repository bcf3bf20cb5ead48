"""What an answer has to tell beside its text, in words."""

from __future__ import annotations

from collections.abc import Sequence

from services.cli.chat.answer import Answer, Report
from services.cli.control_text import printable_line

_ENDS = {
    "length": "cut off: the answer reached its token limit",
    "content_filter": "stopped by an output filter",
    "tool_calls": "the model calls a tool, which this command cannot do",
}
_ACTIONS = {"mask": "masked", "stop": "stopped the answer before", "report": "found"}


def notices(answer: Answer) -> Sequence[str]:
    """Return a line for each thing that a reader should know of an answer that has ended, none for an ordinary one."""
    lines = []
    if answer.context:
        lines.append(_trimmed(answer.context))
    lines += [_filtered(match) for match in answer.filter_matches]
    lines += [_faulty(fault) for fault in answer.format_faults]
    reason = answer.finish_reason or ""
    if reason == "content_filter" and not answer.filter_matches and answer.format_faults:
        lines.append("stopped at the first fault")
    elif reason in _ENDS and not any(match.get("action") == "stop" for match in answer.filter_matches):
        lines.append(_ENDS[reason])
    return lines


def stats_lines(answer: Answer | None) -> Sequence[str]:
    """Return what `/stats` shows of the last answer."""
    if answer is None:
        return ["no answer yet"]
    ttft, rate, usage = answer.ttft, answer.tokens_per_second, answer.usage or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    held = f" ({cached} of them cached)" if cached else ""
    return [
        f"time to first token  {'unknown' if ttft is None else f'{ttft * 1000:.0f} ms'}",
        f"tokens a second      {'unknown' if rate is None else f'{rate:.1f}'}",
        f"prompt tokens        {usage.get('prompt_tokens', 'unknown')}{held}",
        f"answer tokens        {usage.get('completion_tokens', 'unknown')}",
        f"ended by             {answer.finish_reason or answer.error or 'unknown'}",
    ]


def _trimmed(context: Report) -> str:
    dropped, tokens = context.get("dropped_messages", 0), context.get("dropped_tokens", 0)
    how = "summarized" if context.get("summary") else "left out"
    return f"history trimmed: {dropped} earlier messages ({tokens} tokens) were {how} so that the rest fits"


def _filtered(match: Report) -> str:
    action = _ACTIONS.get(str(match.get("action")), "found")
    length = match.get("length", 0)
    return printable_line(f"filter {match.get('rule')} {action} {length} characters at {match.get('start')}")


def _faulty(fault: Report) -> str:
    return printable_line(f"{fault.get('check')} fault at character {fault.get('position')}: {fault.get('message')}")
