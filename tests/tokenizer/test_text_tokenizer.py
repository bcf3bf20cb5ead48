from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest
from services.tokenizer.special_tokens import special_token_texts
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import TokenizerFiles, TokenizerFilesError
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf
from tests.tokenizer.small_tokenizers import wordpiece


def test_a_chat_has_the_ids_that_the_model_was_trained_on(tokenizer_of: TokenizerOf) -> None:
    """SmolLM2: each control token is one id, and nothing is added around the template's text."""
    tokenizer = tokenizer_of(SMOLLM2)
    token_ids = tokenizer.encode_segments(tokenizer.render_chat([{"role": "user", "content": "Hi"}]))
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(token_ids, skip_special_tokens=False).endswith(text)
    assert [token_id for token_id in token_ids if token_id in tokenizer.special_ids] == [1, 2, 1, 2, 1]
    assert tokenizer.eos_token_ids == {2}


@pytest.mark.parametrize("name", ["llama3_1", "gemma3", "mistral_nemo", "deepseek_v3"])
def test_a_chat_has_one_bos(name: str, files_of: FilesOf, tokenizer_of: TokenizerOf) -> None:
    """The template prints BOS and the tokenizer would add it too; a chat has it once, where it begins."""
    tokenizer = tokenizer_of(name)
    text = special_token_texts(files_of(name))["bos_token"]
    (bos,) = [token.id for token in tokenizer.table.added_tokens if token.content == text]
    segments = tokenizer.render_chat([{"role": "user", "content": f"Hi {text}"}])
    assert segments[0].text.startswith(text)
    token_ids = tokenizer.encode_segments(segments)
    assert (token_ids[0], token_ids.count(bos)) == (bos, 1)


@pytest.mark.parametrize("name", [SMOLLM2, "qwen3", "llama2", "gemma3"])
def test_text_survives_the_round_trip(name: str, tokenizer_of: TokenizerOf) -> None:
    """Plain text comes back as it was, but for what the tokenizer normalizes."""
    tokenizer = tokenizer_of(name)

    @given(st.text("aB1 \né漢🦙\t<>|"))
    def holds(text: str) -> None:
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=True)) == text

    holds()


def test_other_threads_run_while_much_is_decoded(tokenizer_of: TokenizerOf) -> None:
    """A million ids are decoded in pieces, also where the reference decodes, which keeps the interpreter."""
    other = TextTokenizer(TokenizerFiles({"tokenizer.json": wordpiece().to_str().encode()}))
    for tokenizer in (tokenizer_of(SMOLLM2), other):
        token_ids, shares = list(range(20, 70)) * 20_000, []
        for _ in range(3):
            thread = threading.Thread(target=tokenizer.decode, args=[token_ids])
            begin = last = time.monotonic()
            longest = 0.0
            thread.start()
            while thread.is_alive():
                time.sleep(0.001)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            shares.append(longest / (last - begin))
        # One that keeps it stops this thread for the whole time.
        assert min(shares) < 0.7


def test_special_tokens_are_added_on_request(tokenizer_of: TokenizerOf) -> None:
    """A completion's prompt gets the tokenizer's BOS, unless the caller wants none."""
    tokenizer = tokenizer_of("llama2")
    assert tokenizer.encode("Hello") == [1, *tokenizer.encode("Hello", add_special_tokens=False)]


def test_a_model_without_chat_template_refuses_chats(tokenizer_of: TokenizerOf) -> None:
    """The error says what to send instead."""
    tokenizer = tokenizer_of("llama2")
    assert not tokenizer.has_chat_template
    with pytest.raises(InvalidRequest, match="no chat template; send a text prompt") as caught:
        tokenizer.render_chat([{"role": "user", "content": "Hi"}])
    assert caught.value.reason == "NO_CHAT_TEMPLATE"


def test_any_tokenizer_is_served() -> None:
    """A tokenizer that neither fastokens nor the tables know works through the reference."""
    reference = wordpiece()
    tokenizer = TextTokenizer(TokenizerFiles({"tokenizer.json": reference.to_str().encode()}))
    assert tokenizer.encoder_backend == "tokenizers"
    token_ids = tokenizer.encode("the quick brown fox.")
    assert tokenizer.decode(token_ids) == "the quick brown fox."
    assert tokenizer.decode([*token_ids, tokenizer.vocab_size]) == "the quick brown fox."


def test_files_that_cannot_be_read_are_refused() -> None:
    """A model whose tokenizer is damaged is not served at all."""
    with pytest.raises(TokenizerFilesError, match=r"tokenizer\.json cannot be read"):
        TextTokenizer(TokenizerFiles({"tokenizer.json": b"{}"}))
