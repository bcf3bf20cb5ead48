"""The text of token ids by plain means, from the reference tokenizer: what ours is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

from services.tokenizer.token_table import DecoderKind, TokenTable

_SENTENCEPIECE_SPACE = "\u2581"


def plain_text(
    reference: Tokenizer, table: TokenTable, token_ids: Sequence[int], skip: bool, prompt: Sequence[int] = ()
) -> str:
    """The text of an output. Only the kind of decoder and what is special come from our table.

    The reference gives it as a whole, but for byte fallback: there it makes a whole run of byte tokens U+FFFD where one
    is bad, so the run is taken apart here.
    """
    if table.kind is DecoderKind.BYTE_LEVEL:
        return str(reference.decode(list(token_ids), skip_special_tokens=skip))
    if table.kind is DecoderKind.OTHER:
        before = reference.decode(list(prompt), skip_special_tokens=skip)
        whole: str = reference.decode([*prompt, *token_ids], skip_special_tokens=skip)
        assert whole.startswith(before)
        return whole[len(before) :]
    hidden = table.special_ids if skip else ()
    text = _fallback_text(reference, (one for one in token_ids if one not in hidden))
    starts = not any(_fallback_text(reference, [one]) for one in prompt if one not in hidden)
    return text[1:] if starts and table.strip_left and text.startswith(" ") else text


def _fallback_text(reference: Tokenizer, token_ids: Iterable[int]) -> str:
    text, run = "", b""
    for token in [*map(reference.id_to_token, token_ids), ""]:
        if token is None:
            continue
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            run += bytes.fromhex(token[3:5])
            continue
        text, run = text + _characters(run), b""
        text += token.replace(_SENTENCEPIECE_SPACE, " ")
    return text


def _characters(run: bytes) -> str:
    """The characters of a run of bytes; each byte that is in none is one U+FFFD."""
    text = ""
    while run:
        length = next((count for count in (1, 2, 3, 4) if _is_character(run[:count])), 0)
        text, run = text + (run[:length].decode() or "\ufffd"), run[length or 1 :]
    return text


def _is_character(content: bytes) -> bool:
    """Whether these bytes are exactly one character."""
    try:
        return len(content.decode()) == 1
    except UnicodeDecodeError:
        return False
