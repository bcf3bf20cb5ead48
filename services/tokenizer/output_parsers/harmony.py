"""gpt-oss' output format, read by its own library.

https://cookbook.openai.com/articles/openai-harmony
"""

from __future__ import annotations

from openai_harmony import HarmonyEncoding, HarmonyError, Role, StreamableParser, load_harmony_encoding

from services.tokenizer.output_parsers.port import Content, NewId, Part, Reasoning, ToolCallPiece
from services.tokenizer.output_parsers.tags import Tags

_MESSAGE = "<|message|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
MARKS = ("<|start|>", "<|channel|>", "<|constrain|>", _MESSAGE, *_ENDS)
_TAGS = Tags(*MARKS)
_FUNCTIONS = "functions."
# Characters of a header, which says where a message goes.
_MAX_HEADER = 1024


class Harmony:
    """The format's vocabulary, which the library brings along. Loading takes 0.1 s; share it."""

    def __init__(self) -> None:
        self.encoding: HarmonyEncoding = load_harmony_encoding("HarmonyGptOss")
        self.mark_ids = {mark: self.encoding.encode(mark, allowed_special={mark})[0] for mark in MARKS}


class HarmonyParser:
    """Messages in channels: `analysis` is reasoning, what goes to `functions.…` is a call, all else is content.

    The library reads token ids. The text is encoded again for it, so that this parser stands behind the same decoder
    as all others; other ids of the same text give the same messages.

    Args:
        harmony: shared by all.
        new_id: makes the calls' ids.
    """

    def __init__(self, harmony: Harmony, new_id: NewId) -> None:
        self._harmony = harmony
        self._new_id = new_id
        self._library = StreamableParser(harmony.encoding, Role.ASSISTANT)
        self._unread = ""
        # What lies outside of messages and comes as content where no message follows.
        self._header = ""
        self._in_message = False
        self._function = ""
        self._broken = False
        self._calls = 0
        self._call_is_empty = False

    def feed(self, text: str) -> list[Part]:
        """Parts that are certain after this text."""
        parts: list[Part] = []
        self._unread += text
        mark: str | None = ""
        while mark is not None and not self._broken:
            before, mark, self._unread = _TAGS.split(self._unread)
            if before and not self._read_text(before, parts):
                self._unread = (mark or "") + self._unread
            elif mark is not None:
                self._read_mark(mark, parts)
        if self._broken:
            self._say(self._unread, parts)
            self._unread = ""
        return parts

    def flush(self) -> list[Part]:
        """The rest at the end of the stream."""
        parts: list[Part] = []
        if self._unread:
            self._read_text(self._unread, parts)
        self._end_message(parts)
        self._say(self._header, parts)
        return parts

    def _read_mark(self, mark: str, parts: list[Part]) -> None:
        if self._in_message and mark not in _ENDS:
            # The library takes it as text of the message.
            self._process(self._harmony.mark_ids[mark], parts)
            return
        self._header += mark
        if not self._process(self._harmony.mark_ids[mark], parts):
            return
        if mark in _ENDS:
            self._end_message(parts)
            self._header = ""
        elif mark == _MESSAGE:
            self._begin_message(parts)

    def _read_text(self, text: str, parts: list[Part]) -> bool:
        if not self._in_message:
            self._header += text
        for token_id in self._harmony.encoding.encode(text, disallowed_special=()):
            if not self._process(token_id, parts):
                return False
        if not self._in_message and len(self._header) > _MAX_HEADER:
            self._break(parts)
            return False
        return True

    def _process(self, token_id: int, parts: list[Part]) -> bool:
        try:
            self._library.process(token_id)
        except HarmonyError:
            self._break(parts)
            return False
        if self._in_message and (piece := self._library.last_content_delta):
            self._pass_on(piece, parts)
        return True

    def _break(self, parts: list[Part]) -> None:
        """What comes is not of the format: from here on all is content."""
        self._broken = True
        self._say(self._header, parts)
        self._header = ""

    def _begin_message(self, parts: list[Part]) -> None:
        self._in_message = True
        self._header = ""
        self._function = self._called_function()
        if self._function:
            parts.append(ToolCallPiece(self._calls, "", self._new_id(), self._function))
            self._calls += 1
            self._call_is_empty = True

    def _called_function(self) -> str:
        recipient = self._library.current_recipient or ""
        return recipient.removeprefix(_FUNCTIONS) if recipient.startswith(_FUNCTIONS) else ""

    def _pass_on(self, piece: str, parts: list[Part]) -> None:
        if self._function:
            self._call_is_empty = False
            parts.append(ToolCallPiece(self._calls - 1, piece))
        elif self._library.current_channel == "analysis":
            parts.append(Reasoning(piece))
        else:
            parts.append(Content(piece))

    def _end_message(self, parts: list[Part]) -> None:
        if self._call_is_empty:
            parts.append(ToolCallPiece(self._calls - 1, "{}"))
        self._call_is_empty = self._in_message = False

    def _say(self, text: str, parts: list[Part]) -> None:
        if text:
            parts.append(Content(text))
