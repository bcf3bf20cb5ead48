from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.tokenizer.decoder import IncrementalDecoder, decoder_for
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.token_table import DecoderKind, TokenTable
from tests.tokenizer.conftest import SMOLLM2, ReferenceOf, TokenizerOf
from tests.tokenizer.plain_texts import plain_text
from tests.tokenizer.small_tokenizers import SMALL_TOKENIZERS

# Byte tokens of the byte-fallback vocabulary stand at byte + 3.
_BYTE = 3
_HELLO, _SPACE = 22557, 28705
_LINE_END = 13


def streamed(
    tokenizer: TextTokenizer, chunks: Sequence[Sequence[int]], skip: bool = True, prompt: Sequence[int] = ()
) -> list[str]:
    """The deltas of these chunks, and the flush."""
    decoder = tokenizer.decoder(prompt, skip)
    return [*(decoder.feed(chunk) for chunk in chunks), decoder.flush()]


def split(token_ids: list[int], cuts: set[int]) -> list[list[int]]:
    """The ids cut at these places."""
    edges = [0, *sorted(cut for cut in cuts if cut < len(token_ids)), len(token_ids)]
    return [token_ids[start:end] for start, end in pairwise(edges)]


CUTS = st.sets(st.integers(1, 40))


def awkward_ids(table: TokenTable) -> st.SearchStrategy[list[int]]:
    """Ids of all sorts: any, those that hold part of a code point, special, added, and ones that do not exist."""
    parts = sorted(one for one in table.token_bytes if table.texts[one] is None)
    sorts = [range(table.vocab_size), parts, sorted(table.special_ids), sorted(table.added_ids), [10**6]]
    return st.lists(st.one_of([st.sampled_from(ids) for ids in sorts if ids]), max_size=40)


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3", SMOLLM2])
def test_byte_level_streams_are_the_one_shot_text(
    name: str, tokenizer_of: TokenizerOf, reference_of: ReferenceOf
) -> None:
    """For any ids, any split and both ways with special tokens, the deltas join to the reference's text."""
    tokenizer, reference = tokenizer_of(name), reference_of(name)

    @given(awkward_ids(tokenizer.table), CUTS, st.booleans(), st.lists(st.integers(0, 1000), max_size=3))
    def holds(token_ids: list[int], cuts: set[int], skip: bool, prompt: list[int]) -> None:
        expected = reference.decode(token_ids, skip_special_tokens=skip)
        assert "".join(streamed(tokenizer, split(token_ids, cuts), skip, prompt)) == expected
        assert tokenizer.decode(token_ids, skip) == expected

    holds()


@pytest.mark.parametrize("name", ["qwen3", "llama2"])
def test_text_streams_without_replacement_characters(name: str, tokenizer_of: TokenizerOf) -> None:
    """No delta of valid text holds U+FFFD, whatever characters the tokens split."""
    tokenizer = tokenizer_of(name)

    @given(st.text(), CUTS)
    def holds(text: str, cuts: set[int]) -> None:
        token_ids = tokenizer.encode(text, add_special_tokens=False)
        deltas = streamed(tokenizer, split(token_ids, cuts), False)
        assert all("\ufffd" not in delta for delta in deltas) or "\ufffd" in text

    holds()


def fallback_ids(table: TokenTable) -> st.SearchStrategy[list[int]]:
    """Text tokens, special tokens and whole characters in byte tokens."""
    characters = st.characters(exclude_categories=["Cs"]).map(lambda char: [_BYTE + byte for byte in char.encode()])
    texts = st.one_of(
        st.sampled_from([one for one, text in enumerate(table.texts) if text is not None]),
        st.just(_SPACE),
        st.just(_HELLO),
        st.sampled_from([0, 1, 2]),
    )
    pieces = st.one_of(texts.map(lambda token_id: [token_id]), characters)
    return st.lists(pieces, max_size=20).map(lambda parts: [token_id for part in parts for token_id in part])


def test_byte_fallback_streams_are_the_one_shot_text(tokenizer_of: TokenizerOf, reference_of: ReferenceOf) -> None:
    """Where bytes form characters, the deltas after any prompt are what the output adds to its text."""
    tokenizer, reference = tokenizer_of("llama2"), reference_of("llama2")
    ids = fallback_ids(tokenizer.table)

    @given(ids, ids, CUTS, st.booleans())
    def holds(prompt: list[int], output: list[int], cuts: set[int], skip: bool) -> None:
        before = reference.decode(prompt, skip_special_tokens=skip)
        both = reference.decode(prompt + output, skip_special_tokens=skip)
        assert before + "".join(streamed(tokenizer, split(output, cuts), skip, prompt)) == both
        assert tokenizer.decode(output, skip) == reference.decode(output, skip_special_tokens=skip)

    holds()


def test_malformed_byte_runs_keep_their_whole_characters(tokenizer_of: TokenizerOf, reference_of: ReferenceOf) -> None:
    """Any run of byte tokens gives its whole characters, and one U+FFFD for every other byte, for any split."""
    tokenizer, reference = tokenizer_of("llama2"), reference_of("llama2")
    tokens = st.one_of(
        st.sampled_from([_BYTE + byte for byte in b"\xf0\x9f\x98\x80\xc3\xa9\xe2a\xff"]), st.just(_HELLO)
    )

    @given(st.lists(st.one_of(tokens, st.integers(0, 31999)), max_size=30), CUTS, st.booleans())
    def holds(token_ids: list[int], cuts: set[int], skip: bool) -> None:
        expected = plain_text(reference, tokenizer.table, token_ids, skip)
        assert "".join(streamed(tokenizer, split(token_ids, cuts), skip)) == expected

    holds()


@pytest.mark.parametrize("small", SMALL_TOKENIZERS, ids=lambda small: small.__name__)
def test_other_decoders_stream_the_one_shot_text(small: Callable[[], Tokenizer]) -> None:
    """WordPiece, Metaspace, and no decoder at all: the deltas after a prompt are what the output adds to its text."""
    reference = small()
    table = TokenTable.from_tokenizer_json(reference.to_str().encode())
    assert table.kind is DecoderKind.OTHER
    ids = st.lists(st.integers(0, table.vocab_size + 1), max_size=40)

    @given(ids, ids, CUTS, st.booleans())
    def holds(prompt: list[int], output: list[int], cuts: set[int], skip: bool) -> None:
        decoder = decoder_for(table, reference, prompt, skip)
        text = "".join([*(decoder.feed(chunk) for chunk in split(output, cuts)), decoder.flush()])
        before = reference.decode(prompt, skip_special_tokens=skip)
        assert before + text == reference.decode(prompt + output, skip_special_tokens=skip)

    holds()


def test_other_decoders_need_the_reference() -> None:
    """Without the reference tokenizer there is no guessing."""
    table = TokenTable.from_tokenizer_json(SMALL_TOKENIZERS[0]().to_str().encode())
    with pytest.raises(ValueError, match="known to the reference tokenizer only"):
        decoder_for(table, None, [], True)


@pytest.mark.parametrize(
    ("name", "token_ids", "skip", "deltas"),
    [
        # A split character comes when it is whole.
        ("qwen3", [11162, 99, 247], True, [" ", "", "🦙", ""]),
        # Cut inside a character.
        ("qwen3", [562, 11162, 99], True, ["ok", " ", "", "\ufffd"]),
        # SentencePiece bytes F0 9F 98 80 F0, then a.
        (
            "llama2",
            [*(_BYTE + byte for byte in b"\xf0\x9f\x98\x80\xf0"), 28708],
            True,
            ["", "", "", "😀", "", "\ufffda", ""],
        ),
        # After an empty prompt.
        ("llama2", [_HELLO, _HELLO], True, ["Hello", " Hello", ""]),
        # Special tokens vanish or show, and add no spaces.
        ("qwen3", [9707, 151645, 1879], True, ["Hello", "", " world", ""]),
        ("qwen3", [9707, 151645, 1879], False, ["Hello", "<|im_end|>", " world", ""]),
        # Added but not special.
        ("qwen3", [151667, 198, 151668], True, ["<think>", "\n", "</think>", ""]),
        # ASCII byte tokens are whole characters.
        ("llama2", [_LINE_END, _BYTE + 0x41, _HELLO], True, ["\n", "A", " Hello", ""]),
    ],
)
def test_named_sequences(
    name: str, token_ids: list[int], skip: bool, deltas: list[str], tokenizer_of: TokenizerOf
) -> None:
    """Each token of these sequences gives exactly this delta; the last entry is the flush."""
    assert streamed(tokenizer_of(name), [[token_id] for token_id in token_ids], skip) == deltas


def test_joined_emoji_stream_code_point_by_code_point(tokenizer_of: TokenizerOf) -> None:
    """Of a family emoji, each person and each joiner is shown as soon as it is whole."""
    tokenizer = tokenizer_of("qwen3")
    family = "👩\u200d👩\u200d👧"
    deltas = streamed(tokenizer, [[token_id] for token_id in tokenizer.encode(family, False)])
    assert "".join(deltas) == family
    assert max(len(delta) for delta in deltas) == 1


def test_a_literal_replacement_character_is_kept(tokenizer_of: TokenizerOf) -> None:
    """U+FFFD as the model's own last character is text like any other, and is shown at once."""
    tokenizer = tokenizer_of("qwen3")
    assert "".join(streamed(tokenizer, [tokenizer.encode("so \ufffd", False)])[:-1]) == "so \ufffd"


@pytest.mark.parametrize("prompt", [[562, 11162, 99], [562, 5691]])
def test_a_prompt_that_ends_inside_a_character_leaks_nothing(prompt: list[int], tokenizer_of: TokenizerOf) -> None:
    """The output decodes as if it stood alone."""
    assert streamed(tokenizer_of("qwen3"), [[9707]], prompt=prompt) == ["Hello", ""]


@pytest.mark.parametrize(
    ("prompt", "skip", "first"),
    [([1, _HELLO], True, " Hello"), ([1], True, "Hello"), ([1], False, " Hello"), ([], True, "Hello")],
)
def test_the_leading_space_goes_only_at_the_start_of_a_text(
    prompt: list[int], skip: bool, first: str, tokenizer_of: TokenizerOf
) -> None:
    """SentencePiece's first space is kept after a prompt that shows text, and dropped otherwise."""
    assert streamed(tokenizer_of("llama2"), [[_HELLO]], skip, prompt)[0] == first


def cpu_seconds(make_decoder: Callable[[], IncrementalDecoder], chunks: list[list[int]]) -> float:
    """The least CPU time of three runs."""
    times = []
    for _ in range(3):
        decoder = make_decoder()
        start = time.process_time()
        for chunk in chunks:
            decoder.feed(chunk)
        decoder.flush()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(("name", "part"), [("qwen3", 99), ("qwen3", 198), ("llama2", 255), ("llama2", _SPACE)])
@pytest.mark.parametrize("at_once", [True, False])
def test_decoding_takes_linear_time(name: str, part: int, at_once: bool, tokenizer_of: TokenizerOf) -> None:
    """Four times the tokens take about four times as long, for invalid bytes, newlines and spaces."""
    tokenizer = tokenizer_of(name)
    short, long = ([part] * count for count in (50_000, 200_000))
    times = [
        cpu_seconds(lambda: tokenizer.decoder(()), [ids] if at_once else [[i] for i in ids]) for ids in (short, long)
    ]
    # Quadratic work would take sixteen times as long; a run of a few milliseconds is noisy.
    assert times[1] < 10 * times[0] + 0.05


@pytest.mark.parametrize("small", SMALL_TOKENIZERS, ids=lambda small: small.__name__)
def test_other_decoders_take_linear_time(small: Callable[[], Tokenizer]) -> None:
    """With the reference as decoder, too, a token costs the same late in a stream and after a long prompt."""
    reference = small()
    table = TokenTable.from_tokenizer_json(reference.to_str().encode())

    def seconds(count: int) -> float:
        return cpu_seconds(lambda: decoder_for(table, reference, [5] * count, True), [[5]] * count)

    # Quadratic work would take sixteen times as long; a run of a few milliseconds is noisy.
    assert seconds(8000) < 10 * seconds(2000) + 0.05
