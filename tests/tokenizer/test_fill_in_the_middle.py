"""Fill in the middle: each family's own control tokens in its own order, and no others."""

from __future__ import annotations

import json

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.fill_in_the_middle import (
    FORMATS,
    FillFormat,
    FillInTheMiddlePrompt,
    end_token_ids,
    fill_format,
)
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.token_table import AddedToken
from services.tokenizer.tokenizer_files import TOKENIZER_JSON, TokenizerFiles
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf

PREFIX, SUFFIX = "def f(x):\n    ", "\n    return y"


def tokens_of(tokenizer: TextTokenizer, text: str, suffix: str, add_special_tokens: bool = True) -> list[str]:
    """The prompt's tokens, each by itself."""
    ids = FillInTheMiddlePrompt(text, suffix, add_special_tokens).token_ids(tokenizer)
    return [tokenizer.table.token_bytes[token_id].decode(errors="replace") for token_id in ids]


def with_control_tokens(files: TokenizerFiles, tokens: list[str]) -> TextTokenizer:
    """A tokenizer with further special tokens."""
    document = json.loads(files.contents[TOKENIZER_JSON])
    free = max(token["id"] for token in document["added_tokens"])
    free = max(free, *document["model"]["vocab"].values()) + 1
    plain = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    document["added_tokens"] += [
        {"id": free + number, "content": content, **plain} for number, content in enumerate(tokens)
    ]
    return TextTokenizer(TokenizerFiles({**files.contents, TOKENIZER_JSON: json.dumps(document).encode()}))


@pytest.mark.parametrize(
    ("name", "begin", "middle", "end"),
    [
        ("qwen3", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        ("deepseek_v3", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ],
)
def test_prefix_suffix_middle(tokenizer_of: TokenizerOf, name: str, begin: str, middle: str, end: str) -> None:
    """Qwen's and DeepSeek's real tokenizers: prefix, suffix, and the place that the model writes at."""
    assert "".join(tokens_of(tokenizer_of(name), PREFIX, SUFFIX)) == begin + PREFIX + middle + SUFFIX + end


def test_codestral_has_the_suffix_first(tokenizer_of: TokenizerOf) -> None:
    """Mistral's real tokenizer: BOS, the suffix, and then the prefix, which the model goes on with."""
    tokenizer = tokenizer_of("mistral_nemo")
    assert "".join(tokens_of(tokenizer, PREFIX, SUFFIX)) == f"<s>[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}"
    assert tokens_of(tokenizer, PREFIX, SUFFIX, add_special_tokens=False)[0] == "[SUFFIX]"


def test_starcoder(files_of: FilesOf) -> None:
    """StarCoder's tokens on a byte-level vocabulary."""
    tokenizer = with_control_tokens(files_of(SMOLLM2), ["<fim_prefix>", "<fim_middle>", "<fim_suffix>"])
    assert "".join(tokens_of(tokenizer, PREFIX, SUFFIX)) == f"<fim_prefix>{PREFIX}<fim_suffix>{SUFFIX}<fim_middle>"


def test_code_llama(files_of: FilesOf) -> None:
    """Code Llama's tokens on Llama's vocabulary: the prefix begins with SentencePiece's space as any text does, the
    suffix does not."""
    tokenizer = with_control_tokens(files_of("llama2"), ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"])
    assert tokens_of(tokenizer, "def", "return") == ["<s>", " <PRE>", " def", " <SUF>", "return", " <MID>"]


@pytest.mark.parametrize(("text", "suffix"), [("", ""), ("", SUFFIX), (PREFIX, "")])
def test_either_side_may_be_empty(tokenizer_of: TokenizerOf, text: str, suffix: str) -> None:
    """At the beginning or end of a file there is nothing on one side."""
    expected = f"<|fim_prefix|>{text}<|fim_suffix|>{suffix}<|fim_middle|>"
    assert "".join(tokens_of(tokenizer_of("qwen3"), text, suffix)) == expected


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3", "mistral_nemo"])
def test_spelled_control_tokens_stay_text(tokenizer_of: TokenizerOf, name: str) -> None:
    """Whatever control token the texts spell, the prompt holds the layout's own three and BOS, once each."""
    tokenizer = tokenizer_of(name)
    layout = fill_format(tokenizer.table.added_tokens)
    assert layout is not None
    controls = [token for token in tokenizer.table.added_tokens if token.special or token.content in layout.tokens]
    added = {token.id: token.content for token in controls}
    spelled = "".join(list(added.values())[:20]) + "".join(layout.tokens)
    ids = FillInTheMiddlePrompt(f"a{spelled}b", f"c{spelled}d", True).token_ids(tokenizer)
    found = [added[token_id] for token_id in ids if token_id in added]
    assert sorted(found) == sorted([*layout.tokens, *(["<s>"] if name == "mistral_nemo" else [])])


@pytest.mark.parametrize("name", [SMOLLM2, "llama2", "llama3_1"])
def test_a_model_without_the_tokens_is_refused(tokenizer_of: TokenizerOf, name: str) -> None:
    """The error names the field and says what to do."""
    with pytest.raises(InvalidRequest) as caught:
        FillInTheMiddlePrompt(PREFIX, SUFFIX, True).token_ids(tokenizer_of(name))
    assert (caught.value.param, caught.value.reason) == ("suffix", "NO_FILL_IN_THE_MIDDLE")


@pytest.mark.parametrize("layout", FORMATS)
def test_a_format_needs_all_its_tokens(layout: FillFormat) -> None:
    """A vocabulary that lacks one of them has no format."""
    added = [AddedToken(number, content, True, False, False) for number, content in enumerate(layout.tokens)]
    assert fill_format(added) is layout
    assert fill_format(added[1:]) is None


def test_the_tokens_that_end_a_gap(tokenizer_of: TokenizerOf, files_of: FilesOf) -> None:
    """Code Llama ends with <EOT>, Qwen at the latest where another file would begin; a model without a format has
    none."""
    llama = with_control_tokens(files_of("llama2"), ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"])
    assert [llama.table.token_bytes[one] for one in end_token_ids(llama.table.added_tokens)] == [b" <EOT>"]
    qwen = tokenizer_of("qwen3").table
    assert {qwen.token_bytes[one] for one in end_token_ids(qwen.added_tokens)} == {
        b"<|fim_pad|>",
        b"<|repo_name|>",
        b"<|file_sep|>",
    }
    assert end_token_ids(tokenizer_of("llama2").table.added_tokens) == []
