"""All text work of one model, built from its tokenizer files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tokenizers import Tokenizer

from services.chassis.errors import InvalidRequest
from services.tokenizer.chat_template import ChatTemplate
from services.tokenizer.decoder import IncrementalDecoder, decoder_for
from services.tokenizer.encoder import Encoder
from services.tokenizer.output_parsers.selection import ParserNames, output_format, takes_tools
from services.tokenizer.segment import Segment
from services.tokenizer.special_tokens import eos_token_ids
from services.tokenizer.token_table import DecoderKind, TokenTable
from services.tokenizer.tokenizer_files import TOKENIZER_JSON, TokenizerFiles

_BY_FILES = ParserNames()
# Token ids that are decoded at once; 4096 take 1 to 10 ms.
_PIECE = 4096
# How many times shorter a text may become before it is taken apart: composed characters, white space stripped.
_SHORTENED = 4


class TextTokenizer:
    """Renders, encodes and decodes for one model. Immutable, and safe to share between threads.

    Building takes 0.3 to 4 s of CPU, by the size of the vocabulary: do it in a thread.

    Args:
        files: of the tokenizer.
        parsers: go before the parsers that the files ask for.
        allow_control_tokens: control tokens that a chat's texts spell are taken as such, wherever they stand.

    Raises:
        TokenizerFilesError: the files cannot be read.
    """

    __slots__ = (
        "_allow_control_tokens",
        "_encoder",
        "_longest_token",
        "_parsing_table",
        "_reference",
        "_template",
        "eos_token_ids",
        "output_format",
        "table",
        "takes_tools",
        "vocab_size",
    )

    def __init__(
        self, files: TokenizerFiles, parsers: ParserNames = _BY_FILES, allow_control_tokens: bool = False
    ) -> None:
        self._allow_control_tokens = allow_control_tokens
        tokenizer_json = files.contents[TOKENIZER_JSON]
        self.table = TokenTable.from_tokenizer_json(tokenizer_json)
        # Counted once: it takes milliseconds, and every prompt of ids is checked against it.
        self.vocab_size = self.table.vocab_size
        self._encoder = Encoder(tokenizer_json)
        self._longest_token = max(map(len, self.table.token_bytes.values()), default=1)
        # The reference takes as much memory as everything else, and the tables replace it for most models.
        self._reference = Tokenizer.from_buffer(tokenizer_json) if self.table.kind is DecoderKind.OTHER else None
        self._template = ChatTemplate.from_files(files, self.table.added_tokens)
        self.eos_token_ids = eos_token_ids(files, self.table)
        source = "" if self._template is None else self._template.source
        self.takes_tools = takes_tools(source)
        self.output_format = output_format(source, {token.content for token in self.table.added_tokens}, parsers)
        self._parsing_table = self.table.showing(self.output_format.tags)

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that `skip_special_tokens` hides."""
        return self.table.special_ids

    @property
    def encoder_backend(self) -> Literal["fastokens", "tokenizers"]:
        """The library that encodes this model's text."""
        return self._encoder.backend

    @property
    def has_chat_template(self) -> bool:
        """Whether chats can be rendered."""
        return self._template is not None

    def least_tokens(self, size: int) -> int:
        """Number of tokens that a text of `size` characters has at least, found without encoding it.

        Far below the truth, so that it holds too where a tokenizer shortens a text before it takes it apart.
        """
        return size // (_SHORTENED * self._longest_token)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a text (see `Encoder.encode`)."""
        return self._encoder.encode(text, add_special_tokens)

    def render_chat(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template_variables: Mapping[str, object] | None = None,
    ) -> list[Segment]:
        """The prompt text of a chat in segments (see `ChatTemplate.render`).

        Raises:
            InvalidRequest: as `ChatTemplate.render`, or the model has no chat template.
        """
        if self._template is None:
            raise InvalidRequest(
                "this model has no chat template; send a text prompt instead",
                param="messages",
                reason="NO_CHAT_TEMPLATE",
            )
        return self._template.render(
            messages,
            tools,
            add_generation_prompt,
            continue_final_message,
            template_variables,
            self._allow_control_tokens,
        )

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Token ids of a rendered chat. Nothing is added: the template prints BOS where the model wants it."""
        return self._encoder.encode_segments(segments)

    def decoder(self, prompt_token_ids: Sequence[int], skip_special_tokens: bool = True) -> IncrementalDecoder:
        """A decoder for the tokens generated after this prompt (see `decoder_for`)."""
        return decoder_for(self.table, self._reference, prompt_token_ids, skip_special_tokens)

    def parsing_decoder(self, prompt_token_ids: Sequence[int], skip_special_tokens: bool = True) -> IncrementalDecoder:
        """The same for an output parser: the special tokens that it looks for are shown, whatever is skipped."""
        return decoder_for(self._parsing_table, self._reference, prompt_token_ids, skip_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of token ids, exactly as streaming them gives it. Ids that do not exist give no text."""
        decoder = self.decoder((), skip_special_tokens)
        # In pieces, since each holds the interpreter lock.
        pieces = [decoder.feed(token_ids[start : start + _PIECE]) for start in range(0, len(token_ids), _PIECE)]
        return "".join([*pieces, decoder.flush()])
