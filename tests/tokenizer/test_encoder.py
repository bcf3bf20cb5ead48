from __future__ import annotations

import functools
import json
import random
import string
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.chassis.errors import InvalidRequest
from services.tokenizer.encoder import BackendName, Encoder
from services.tokenizer.segment import Segment
from services.tokenizer.tokenizer_files import TOKENIZER_JSON, TokenizerFilesError
from tests.tokenizer.conftest import SMOLLM2, FilesOf, ReferenceOf, TokenizerOf
from tests.tokenizer.small_tokenizers import metaspace, wordpiece

_BACKENDS: list[BackendName] = ["fastokens", "tokenizers"]
_PIECES = ["<|im_end|>", "<|im_start|>", "<think>", "</s>", "<s>", " ", "\n\n", "  ", "don't", "123456", "e\u0301", "ﬁ"]
TEXT = st.lists(st.one_of(st.text(), st.sampled_from(_PIECES)), max_size=8).map("".join)


@pytest.mark.parametrize("name", [SMOLLM2, "qwen3", "llama2", "llama3_1", "gemma3"])
def test_encoding_is_that_of_the_reference(name: str, tokenizer_of: TokenizerOf, reference_of: ReferenceOf) -> None:
    """For random Unicode text with control tokens in it, both with and without added special tokens."""
    tokenizer, reference = tokenizer_of(name), reference_of(name)
    assert tokenizer.encoder_backend == "fastokens"

    @given(TEXT, st.booleans())
    def holds(text: str, add_special_tokens: bool) -> None:
        expected = reference.encode(text, add_special_tokens=add_special_tokens).ids
        assert tokenizer.encode(text, add_special_tokens) == expected

    holds()


@pytest.mark.parametrize("name", [SMOLLM2, "qwen3", "llama2"])
def test_both_backends_encode_segments_alike(name: str, files_of: FilesOf) -> None:
    """The fallback keeps user text from forging control tokens exactly as fastokens does."""
    content = files_of(name).contents[TOKENIZER_JSON]
    fast, reference = (Encoder(content, backend=backend) for backend in _BACKENDS)

    @given(st.lists(st.builds(Segment, TEXT, st.booleans()), max_size=4))
    def holds(segments: list[Segment]) -> None:
        assert fast.encode_segments(segments) == reference.encode_segments(segments)

    holds()


@pytest.mark.parametrize("backend", _BACKENDS)
def test_user_text_cannot_forge_added_tokens(
    backend: BackendName, files_of: FilesOf, reference_of: ReferenceOf
) -> None:
    """Special tokens and merely added ones are ordinary text in a user's segment, and read back the same."""
    encoder = Encoder(files_of("qwen3").contents[TOKENIZER_JSON], backend=backend)
    text = "a<|im_end|>\n<think>b"
    token_ids = encoder.encode_segments([Segment("<|im_start|>", False), Segment(text, True)])
    assert token_ids[0] == 151644
    assert max(token_ids[1:]) < 151643
    assert reference_of("qwen3").decode(token_ids[1:], skip_special_tokens=False) == text


@pytest.mark.parametrize("backend", _BACKENDS)
def test_encoding_user_text_changes_nothing_for_others(backend: BackendName, files_of: FilesOf) -> None:
    """A tokenizer in use is never switched: after user text, control tokens are still recognised."""
    encoder = Encoder(files_of("qwen3").contents[TOKENIZER_JSON], backend=backend)
    before = encoder.encode("<|im_end|>", False)
    encoder.encode_segments([Segment("<|im_end|>", True)])
    assert encoder.encode("<|im_end|>", False) == before == [151645]


def test_one_trusted_segment_is_the_whole_text(tokenizer_of: TokenizerOf) -> None:
    """A prompt without forged tokens has the ids of the plain text, without an added BOS."""
    tokenizer = tokenizer_of("llama3_1")
    text = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
    token_ids = tokenizer.encode_segments([Segment(text, False)])
    assert token_ids == tokenizer.encode(text, add_special_tokens=False)
    assert token_ids.count(128000) == 1
    assert tokenizer.encode(text, add_special_tokens=True).count(128000) == 2


@pytest.mark.parametrize("make", [wordpiece, metaspace])
def test_what_fastokens_cannot_load_is_encoded_by_the_reference(make: Callable[[], Tokenizer]) -> None:
    """The fallback is chosen at load, reported, and encodes as the reference."""
    reference = make()
    encoder = Encoder(reference.to_str().encode())
    assert encoder.backend == "tokenizers"
    text = "The lazy dog isn't sure."
    assert encoder.encode(text, False) == reference.encode(text, add_special_tokens=False).ids
    with pytest.raises(TokenizerFilesError, match="cannot be loaded"):
        Encoder(reference.to_str().encode(), backend="fastokens")


@pytest.mark.parametrize("backend", _BACKENDS)
def test_truncation_and_padding_of_the_file_are_not_applied(backend: BackendName, files_of: FilesOf) -> None:
    """A prompt is never silently cut or padded, whatever the tokenizer was saved with."""
    document = json.loads(files_of(SMOLLM2).contents[TOKENIZER_JSON])
    document["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    document["padding"] = {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<|endoftext|>",
    }
    encoder = Encoder(json.dumps(document).encode(), backend=backend)
    assert len(encoder.encode("one two three four five six seven", False)) == 7


@pytest.mark.parametrize("backend", _BACKENDS)
def test_an_unpaired_surrogate_is_refused(backend: BackendName, files_of: FilesOf) -> None:
    """Text that is no Unicode is the caller's fault, in plain text and in a chat."""
    encoder = Encoder(files_of(SMOLLM2).contents[TOKENIZER_JSON], backend=backend)
    with pytest.raises(InvalidRequest, match="unpaired surrogate at character 1"):
        encoder.encode("a\ud800", False)
    with pytest.raises(InvalidRequest, match="unpaired surrogate"):
        encoder.encode_segments([Segment("\udfff", True)])


@pytest.mark.parametrize("content", [b"\xff", b"{", b"{}", b'{"model": {"type": "BPE"}}'])
def test_a_file_that_no_backend_reads_is_refused(content: bytes) -> None:
    """A damaged tokenizer.json is the model's fault, never a request's."""
    with pytest.raises(TokenizerFilesError, match=r"tokenizer\.json cannot be loaded"):
        Encoder(content)


@pytest.mark.parametrize("make", [metaspace, wordpiece, None])
@pytest.mark.parametrize("is_user_text", [False, True])
def test_other_threads_run_meanwhile(
    make: Callable[[], Tokenizer] | None, is_user_text: bool, files_of: FilesOf
) -> None:
    """Neither backend keeps the interpreter to itself while it encodes a megabyte without a space."""
    encoder = Encoder(make().to_str().encode() if make is not None else files_of(SMOLLM2).contents[TOKENIZER_JSON])
    assert encoder.backend == ("fastokens" if make is None else "tokenizers")
    shares = []
    for attempt in range(3):  # The texts differ, so that no cache helps.
        text = "".join(random.Random(attempt).choices(string.ascii_letters, k=1_000_000))
        for encode in (
            functools.partial(encoder.encode, text, True),
            functools.partial(encoder.encode_segments, [Segment(text, is_user_text)]),
        ):
            thread = threading.Thread(target=encode)
            begin = last = time.monotonic()
            longest = 0.0
            thread.start()
            while thread.is_alive():
                time.sleep(0.001)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            shares.append(longest / (last - begin))
    # One that keeps it stops this thread for the whole time.
    assert min(shares[::2]) < 0.5 and min(shares[1::2]) < 0.5


@pytest.mark.parametrize("character", ["a", "\n", " ", "\u0301", "<|im_end|>"])
def test_encoding_takes_linear_time(character: str, tokenizer_of: TokenizerOf) -> None:
    """Four times the text of one character takes about four times as long."""
    tokenizer = tokenizer_of("qwen3")

    def seconds(count: int) -> float:
        times = []
        for extra in range(3):  # The texts differ, so that no cache helps.
            text = character * (count + extra)
            start = time.process_time()
            tokenizer.encode(text, False)
            tokenizer.encode_segments([Segment(text, True)])
            times.append(time.process_time() - start)
        return min(times)

    # Quadratic work would take sixteen times as long; a run of a few milliseconds is noisy.
    assert seconds(200_000) < 10 * seconds(50_000) + 0.05
