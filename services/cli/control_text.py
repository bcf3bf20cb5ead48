"""Text from elsewhere, made fit for a terminal."""

from __future__ import annotations

# A model may write any character; some would move the cursor or reprogram the terminal (ECMA-48's C0 and C1, DEL), and
# some turn the reading order of what follows, so that it looks like something else (Unicode's bidirectional controls).
_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: dict[int, str | None] = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0x7F, 0xA0), *_BIDIRECTIONAL)
    if chr(code) not in "\n\t"
}
# The other half of a line's end in some texts; alone it would let one line overwrite itself.
_CONTROLS[ord("\r")] = None


def printable(text: str) -> str:
    """Return the text with U+FFFD for each control character but line ends and tabs, and without carriage returns.

    It works on any piece of a text: what the pieces become is what the whole becomes.
    """
    return text.translate(_CONTROLS)


def printable_line(text: object) -> str:
    """Return a text from elsewhere as one printable line."""
    return printable(" ".join(str(text).split()))
