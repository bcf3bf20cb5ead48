"""Text -> token ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, Protocol

import fastokens
from tokenizers import Tokenizer

from services.chassis.errors import InvalidRequest
from services.tokenizer.segment import Segment
from services.tokenizer.tokenizer_files import TokenizerFilesError

BackendName = Literal["fastokens", "tokenizers"]

# Several scripts, white space, digits and signs: a backend that reads a tokenizer.json wrongly fails on it.
_PROBE = (
    "Hello,  wörld!\n\n\t3.14159 <b>don't</b> 漢字かな 한국어 Привет עברית 🦙👩\u200d👩\u200d👧 e\u0301 \u200b\r\n"
    "  def f(x):\n    return x"
)


class _Backend(Protocol):
    def encode(self, text: str, add_special_tokens: bool) -> list[int]: ...

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]: ...


class Encoder:
    """Encodes text with one model's tokenizer. Immutable and safe to share between threads.

    fastokens encodes where it reads the file and agrees with the reference on a probe; else the reference itself,
    Hugging Face's tokenizers. Both give the interpreter lock away while they encode.

    Args:
        tokenizer_json: contents of tokenizer.json. Its truncation and padding are not applied.
        backend: insist on one instead of choosing.

    Raises:
        TokenizerFilesError: no backend can read the file, or the named one cannot.
    """

    __slots__ = ("_backend", "_name")

    def __init__(self, tokenizer_json: bytes, *, backend: BackendName | None = None) -> None:
        self._name: BackendName
        self._backend: _Backend
        try:
            text = tokenizer_json.decode()
            if backend == "tokenizers":
                self._name, self._backend = "tokenizers", _ReferenceBackend(text)
            elif backend == "fastokens":
                self._name, self._backend = "fastokens", _FastBackend(text)
            else:
                self._name, self._backend = _chosen(text)
        # The reference raises bare Exception for what it cannot read.
        except Exception as error:
            raise TokenizerFilesError(f"tokenizer.json cannot be loaded: {error}; save the tokenizer anew") from error

    @property
    def backend(self) -> BackendName:
        """The library that encodes."""
        return self._name

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """Encode text in which control tokens are recognised, as the reference tokenizer does.

        Args:
            text: any length, also empty.
            add_special_tokens: True adds what the tokenizer puts around a text, mostly BOS. False for rendered chats,
                whose template prints it.

        Raises:
            InvalidRequest: the text holds an unpaired surrogate.
        """
        _check_unicode(text)
        return self._backend.encode(text, add_special_tokens)

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Encode a rendered chat, without adding special tokens; user text cannot forge a control token.

        Raises:
            InvalidRequest: a text holds an unpaired surrogate.
        """
        for segment in segments:
            _check_unicode(segment.text)
        return self._backend.encode_segments(segments)


class _FastBackend:
    __slots__ = ("_tokenizer",)

    def __init__(self, tokenizer_json: str) -> None:
        self._tokenizer = fastokens.Tokenizer.from_json_str(tokenizer_json)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # What its first use builds takes 0.2 s: now, not while streams wait for a prompt.
        self._tokenizer.encode_ordinary("a")

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        # Its own `encode_segments` holds the interpreter lock, which stops all streams for 0.3 s at 1 MB.
        token_ids: list[int] = []
        for text, is_user_text in segments:
            token_ids += self._tokenizer.encode_ordinary(text).ids if is_user_text else self.encode(text, False)
        return token_ids


class _ReferenceBackend:
    """Two tokenizers: settings of one that is in use must not change, so user text has its own."""

    __slots__ = ("_ordinary", "_tokenizer")

    def __init__(self, tokenizer_json: str) -> None:
        self._tokenizer = _without_limits(tokenizer_json)
        document = json.loads(tokenizer_json)
        # The switch below reaches special tokens alone; here every added token is to be ordinary text.
        for token in document.get("added_tokens") or ():
            token["special"] = True
        self._ordinary = _without_limits(json.dumps(document))
        self._ordinary.encode_special_tokens = True

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return _ids(self._tokenizer, text, add_special_tokens)

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        token_ids: list[int] = []
        for text, is_user_text in segments:
            token_ids += _ids(self._ordinary if is_user_text else self._tokenizer, text, False)
        return token_ids


def _ids(tokenizer: Tokenizer, text: str, add_special_tokens: bool) -> list[int]:
    # `encode` holds the interpreter lock, which stops all streams for a second at 1 MB; a batch of one does not.
    ids: list[int] = tokenizer.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0].ids
    return ids


def _without_limits(tokenizer_json: str) -> Tokenizer:
    tokenizer = Tokenizer.from_str(tokenizer_json)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _chosen(tokenizer_json: str) -> tuple[BackendName, _Backend]:
    try:
        fast = _FastBackend(tokenizer_json)
    except ValueError:
        return "tokenizers", _ReferenceBackend(tokenizer_json)
    reference = _without_limits(tokenizer_json)
    for add_special_tokens in (False, True):
        expected = reference.encode(_PROBE, add_special_tokens=add_special_tokens).ids
        if fast.encode(_PROBE, add_special_tokens) != expected:
            return "tokenizers", _ReferenceBackend(tokenizer_json)
    return "fastokens", fast


def _check_unicode(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"the text holds an unpaired surrogate at character {error.start}; send valid Unicode"
        ) from error
