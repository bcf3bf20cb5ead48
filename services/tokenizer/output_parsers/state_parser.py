"""What tool parsers have in common: a state that looks at the text not yet read, and the parts it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from services.tokenizer.output_parsers.json_call import BLANKS, JsonValue
from services.tokenizer.output_parsers.port import Content, NewId, Part, ToolCallPiece
from services.tokenizer.output_parsers.tags import Tags

# White space before a tag belongs to the format, not to the content, up to this length.
_MAX_BLANKS = 16


class StateParser(ABC):
    """Reads content until a tag begins a call.

    Each state is a method that takes what it can from `_unread` and says whether the next state should go on at once;
    False waits for more text.

    Args:
        openings: tags that begin a call.
        new_id: makes the calls' ids.
    """

    def __init__(self, openings: Tags, new_id: NewId) -> None:
        self._openings = openings
        self._new_id = new_id
        self._state: Callable[[], bool] = self._in_content
        self._unread = ""
        # Text read since the content ended, which comes back as content where no call follows.
        self._doubtful = ""
        # Nothing but white space since the last call.
        self._blank = True
        self._calls = 0
        self._parts: list[Part] = []

    def feed(self, text: str) -> list[Part]:
        """Parts that are certain after this text."""
        self._unread += text
        while self._unread and self._state():
            pass
        return self._taken()

    def flush(self) -> list[Part]:
        """The rest at the end of the stream."""
        self._give_back()
        rest = self._doubtful + self._unread
        self._doubtful = self._unread = ""
        if rest.strip(BLANKS) or not self._calls:
            self._say(rest)
        return self._taken()

    @abstractmethod
    def _opened(self, tag: str) -> Callable[[], bool]:
        """The state after a tag that begins a call."""

    def _give_back(self) -> None:
        """Add to `_doubtful` what the state has read and kept, at the end of the stream."""
        return

    def _in_content(self) -> bool:
        before, tag, rest = self._openings.split(self._unread)
        if self._blank and not before.strip(BLANKS) and len(before) <= _MAX_BLANKS:
            if tag is None:
                return False
        else:
            self._say(before)
            before = ""
        self._unread = rest
        if tag is None:
            return False
        self._doubtful = before + tag
        self._state = self._opened(tag)
        return True

    def _no_call(self, read: str = "") -> bool:
        """It was no call: what was read since the tag is content."""
        self._say(self._doubtful + read)
        self._doubtful = ""
        self._state = self._in_content
        return True

    def _after_calls(self) -> bool:
        """A call's end was read: content again, in which white space may precede the next call."""
        self._doubtful = ""
        self._blank = True
        self._state = self._in_content
        return True

    def _starts_with(self, mark: str) -> bool | None:
        """Whether the output begins with a mark after white space; None when nothing but white space has come."""
        text = self._unread.lstrip(BLANKS)
        if len(self._unread) - len(text) > _MAX_BLANKS:
            return False
        return text.startswith(mark) if text else None

    def _skip(self, syntax: str) -> bool | None:
        """Read a mark of the format after white space: True when it was there, False when not, None when not yet."""
        text = self._unread.lstrip(BLANKS)
        if text.startswith(syntax):
            self._doubtful += self._unread[: len(self._unread) - len(text) + len(syntax)]
            self._unread = text[len(syntax) :]
            return True
        return None if syntax.startswith(text) else False

    def _begin(self, name: str, arguments: str) -> None:
        """A call is certain."""
        self._doubtful = ""
        self._parts.append(ToolCallPiece(self._calls, arguments, self._new_id(), name))
        self._calls += 1

    def _continue(self, arguments: str) -> None:
        """The last call goes on."""
        if arguments:
            self._parts.append(ToolCallPiece(self._calls - 1, arguments))

    def _say(self, text: str) -> None:
        if text:
            self._blank = False
            self._parts.append(Content(text))

    def _taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts


class HeaderCallParser(StateParser):
    """Calls as a name, some marks, and an object of arguments."""

    def __init__(self, openings: Tags, new_id: NewId) -> None:
        super().__init__(openings, new_id)
        self._value = JsonValue()

    def _in_arguments_from(self, name: str) -> bool:
        self._begin(name, "")
        self._value = JsonValue()
        self._state = self._in_arguments
        return True

    def _in_arguments(self) -> bool:
        end = self._value.end(self._unread)
        stop = len(self._unread) if end < 0 else end
        self._continue(self._unread[:stop])
        self._unread = self._unread[stop:]
        if end >= 0:
            self._state = self._after_arguments
        return end >= 0

    @abstractmethod
    def _after_arguments(self) -> bool:
        """The state after a call's arguments."""
