"""Characters that tokens split, special tokens, and the prompt's end: exact ids from real vLLM, exact text."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from tests.e2e.forced import END, PROMPT, ids_of, in_one_piece, over_grpc, streamed
from tests.e2e.service import Service

LLAMA = "\N{LLAMA}"
FAMILY = "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
CHINESE = "\u6f22\u5b57\u304b\u306a"


@pytest.mark.parametrize("text", [f"a {LLAMA}b", FAMILY, CHINESE, "so \ufffd", f"\ufffd{LLAMA}"])
def test_characters_come_whole(service: Service, reference: Tokenizer, text: str) -> None:
    """Split emoji, families of them and Chinese come code point by code point, U+FFFD only where the model
    says it, streamed as in one piece and over gRPC."""
    ids = ids_of(reference, text)
    assert len(ids) > len(text) or text == "so \ufffd"
    flowing = streamed(service, ids)
    assert flowing.text == in_one_piece(service, ids).text == over_grpc(service, ids).text == text
    assert all(len(delta) == 1 for delta in flowing.deltas if not delta.isascii())
    assert sum("\ufffd" in delta for delta in flowing.deltas) == text.count("\ufffd")


def test_a_character_that_is_cut_is_one_replacement(service: Service, reference: Tokenizer) -> None:
    """Where max_tokens cuts a character, the text ends with one U+FFFD, streamed and not alike."""
    ids = ids_of(reference, f"ok {LLAMA}")
    for cut in (1, 2):
        expected = "ok \ufffd"
        flowing, whole = streamed(service, ids[:-cut]), in_one_piece(service, ids[:-cut])
        assert (flowing.text, whole.text, over_grpc(service, ids[:-cut]).text) == (expected,) * 3
        assert flowing.finish_reason == whole.finish_reason == "length"
        assert flowing.completion_tokens == whole.completion_tokens == len(ids) - cut


def test_log_probabilities_of_a_split_character(service: Service, reference: Tokenizer) -> None:
    """Each token has its own bytes, and its string is that of its bytes, not of the delta."""
    ids = ids_of(reference, f"a {LLAMA}")
    called = over_grpc(service, ids, sampling={"logprobs": 0})
    own = [list(token) for delta in called.deltas for token in delta.logprobs.token_bytes]
    assert own == [[97], [32, 240, 159], [166], [153]]
    flowing, whole = streamed(service, ids), in_one_piece(service, ids)
    assert flowing.tokens == whole.tokens == ["a", " \ufffd", "\ufffd", "\ufffd"]
    assert flowing.deltas == ["a", " ", LLAMA]


@pytest.mark.parametrize(("skip", "text"), [(True, "Hello world"), (False, "Hello<|im_start|> world<|im_start|>")])
def test_special_tokens_in_mid_text(service: Service, reference: Tokenizer, skip: bool, text: str) -> None:
    """They are hidden or shown as they are asked for, and no space is added around them."""
    ids = [*ids_of(reference, "Hello"), 1, *ids_of(reference, " world"), 1]
    flowing = streamed(service, ids, skip_special_tokens=skip)
    assert flowing.text == in_one_piece(service, ids, skip_special_tokens=skip).text == text
    assert over_grpc(service, ids, skip_special_tokens=skip).text == text
    assert flowing.completion_tokens == len(ids)


@pytest.mark.parametrize("skip", [True, False])
def test_an_end_token_that_does_not_end(service: Service, reference: Tokenizer, skip: bool) -> None:
    """With ignore_eos the end token is a special token like any other."""
    (hello,) = ids_of(reference, "Hello")
    # No grammar takes the end token; the highest bias decides.
    forced = {"structured_outputs": None, "allowed_token_ids": [END, hello], "logit_bias": {str(END): 100}}
    for ask in (streamed, in_one_piece):
        answer = ask(service, [END] * 3, skip_special_tokens=skip, temperature=0, **forced)
        assert (answer.text, answer.completion_tokens) == ("" if skip else "<|im_end|>" * 3, 3)
        assert (answer.finish_reason, answer.tokens) == ("length", ["<|im_end|>"] * 3)


@pytest.mark.parametrize("end", [f"ok {LLAMA}", "ok \ufffd"])
def test_nothing_of_the_prompt_is_said_again(service: Service, reference: Tokenizer, end: str) -> None:
    """After a prompt that ends inside a character or with U+FFFD the first delta is the output's own text, and with
    the prompt echoed it follows that."""
    ids = ids_of(reference, "Hello")
    prompt = [*PROMPT, *ids_of(reference, end)]
    prompt = prompt[:-1] if end.endswith(LLAMA) else prompt
    flowing, whole = streamed(service, ids, prompt=prompt), in_one_piece(service, ids, prompt=prompt)
    assert (flowing.deltas, whole.text) == (["Hello"], "Hello")
    assert over_grpc(service, ids, prompt=prompt).text == "Hello"
    before: str = reference.decode(prompt, skip_special_tokens=True)
    assert before.endswith("ok \ufffd")
    for ask in (streamed, in_one_piece):
        assert ask(service, ids, prompt=prompt, echo=True).text == before + "Hello"
