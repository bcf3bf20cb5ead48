"""How tests run a checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from services.tokenizer.format_checks.port import Fault, FormatChecker


def faults_of(new: Callable[[], FormatChecker], pieces: Sequence[str]) -> list[Fault]:
    """All faults of a text in pieces, after seeing that each was told by the piece that showed it."""
    checker, fed = new(), 0
    found: list[Fault] = []
    for piece in pieces:
        faults = checker.feed(piece)
        assert all(fed <= fault.shown_at < fed + len(piece) for fault in faults), (faults, fed, piece)
        found += faults
        fed += len(piece)
    last = checker.finish()
    assert all(fault.shown_at == fed for fault in last), (last, fed)
    found += last
    assert all(fault.position <= fault.shown_at and "\n" not in fault.message for fault in found)
    return found


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    """The text cut at these places."""
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[begin:end] for begin, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 1 << 30), max_size=12)
