"""A piece of a rendered prompt and how it is to be encoded."""

from __future__ import annotations

from typing import NamedTuple


class Segment(NamedTuple):
    """A piece of a prompt's text.

    Attributes:
        text: the piece.
        is_user_text: True where a caller's text spells a control token. No added token is recognised in such
            a piece: it is encoded as ordinary text. Segments meet at control tokens of the template only.
    """

    text: str
    is_user_text: bool
