"""What a run found, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LATENCIES = {
    "ttft_ms": "first token",
    "itl_ms": "between chunks",
    "gap_per_token_ms": "gap per token",
    "e2e_ms": "end to end",
}
_COLUMNS = ("mean", "p50", "p95", "p99", "max")


def table(found: Mapping[str, Any]) -> str:
    """Return the report as lines of text."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    requests, tokens = found["requests"], found["tokens"]
    yield f"{found['model']} at {found['url']}, {found['load']['endpoint']}, {found['duration_s']:.2f} s"
    yield ""
    counts = ", ".join(f"{requests[name]} {name}" for name in ("completed", "cancelled", "unfinished", "failed"))
    yield f"requests    {counts}; {requests['completed_per_s']:.2f} completed a second"
    about = "about " if tokens["completion_estimated"] else ""
    yield f"output      {about}{tokens['completion']} tokens, {about}{tokens['completion_per_s']:.1f} a second"
    if tokens["per_chunk"] is not None:
        yield f"            {tokens['chunks']} chunks, {tokens['per_chunk']:.2f} tokens in each"
    cached = f", {tokens['prompt_cached']} of them cached" if tokens["prompt_cached"] else ""
    yield f"input       {tokens['prompt']} tokens, {tokens['prompt_per_s']:.1f} a second{cached}"
    if (goodput := found["goodput"]) is not None:
        limits = ", ".join(f"{name} {limit:g}" for name, limit in goodput["targets"].items())
        share = "–" if goodput["share"] is None else f"{100 * goodput['share']:.1f} %"
        yield f"goodput     {share} of the requests within {limits}; {goodput['requests_per_s']:.2f} a second"
    yield ""
    yield from _grid(["ms", *_COLUMNS], [_latency(found, name) for name in _LATENCIES])
    yield ""
    rows = [_cpu_row("generator", found["generator"])]
    if (cpu := found["cpu"]) is not None:
        rows = [_cpu_row(name, figures) for name, figures in cpu["processes"].items()] + rows
        rows.insert(-1, _cpu_row("together", cpu["total"]))
    yield from _grid(["CPU", "seconds", "cores", "µs a token"], rows)
    if found["errors"]:
        yield ""
        for error in found["errors"]:
            yield f"{error['count']} × {error['kind']}: {error['example']}"
    if found["warnings"]:
        yield ""
        yield from (f"warning: {warning}" for warning in found["warnings"])


def _latency(found: Mapping[str, Any], name: str) -> list[str]:
    figures = found[name] or {}
    return [_LATENCIES[name], *(_figure(figures.get(column)) for column in _COLUMNS)]


def _cpu_row(name: str, figures: Mapping[str, float | None]) -> list[str]:
    return [name, *(_figure(figures[column]) for column in ("cpu_s", "cores", "us_per_token"))]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        first, *others = row
        yield "  ".join(
            [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))]
        )
