"""The tool calls of an answer, in pieces and whole, as OpenAI's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """The next piece of a call; `id` and `name` are in its first piece only. `arguments` are characters of JSON."""

    index: int
    arguments: str
    id: str | None = None
    name: str | None = None


def piece_objects(pieces: Sequence[ToolCallPiece]) -> list[dict[str, Any]]:
    """Return what a chunk tells of calls."""
    return [_piece_object(piece) for piece in pieces]


def _piece_object(piece: ToolCallPiece) -> dict[str, Any]:
    if piece.id is None:
        return {"index": piece.index, "function": {"arguments": piece.arguments}}
    function = {"name": piece.name, "arguments": piece.arguments}
    return {"index": piece.index, "id": piece.id, "type": "function", "function": function}


def whole_objects(pieces: Sequence[ToolCallPiece]) -> list[dict[str, Any]]:
    """Return the calls that all pieces of a choice make."""
    calls: dict[int, tuple[ToolCallPiece, list[str]]] = {}
    for piece in pieces:
        calls.setdefault(piece.index, (piece, []))[1].append(piece.arguments)
    return [
        {"id": first.id, "type": "function", "function": {"name": first.name, "arguments": "".join(arguments)}}
        for first, arguments in calls.values()
    ]
