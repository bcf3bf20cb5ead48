"""Tell a template's control tokens from those that a caller's text only spells.

A rendered chat is one string, in which `<|im_end|>` looks the same whoever wrote it. To learn where each character
came from, the chat is rendered once more with the characters that begin and end control tokens exchanged, in the
caller's texts alone, for private characters. One character stays one character, so templates may strip, slice, join and
print as JSON what they are given. If exchanging back gives the plain rendering, each control token with a private
character at an edge is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from services.chassis.errors import InvalidRequest
from services.tokenizer.segment import Segment
from services.tokenizer.token_table import AddedToken

# Plane 16 is for private use: no tokenizer's control token and hardly any text has a character of it.
_PRIVATE_CHARACTERS = range(0x100000, 0x10FFFE)


class Scope(Enum):
    """How much of a caller's text is exchanged, from most to least. Less disturbs a template less."""

    EVERYTHING = "every edge character"
    ALL_BUT_MARKS = "every edge character outside of marks such as <think>, for which templates search texts"
    SPELLED_OUT = "special tokens that stand in one text as a whole"


@dataclass(frozen=True, slots=True)
class Disguise:
    """Private characters for one rendering, by the character that they stand for. None of them is in the rendering."""

    private: Mapping[str, str]

    def removed(self, text: str) -> str:
        """The text with the private characters exchanged back."""
        for character, private in self.private.items():
            text = text.replace(private, character)
        return text


class ControlTokens:
    """The added tokens that steer a model, for one chat template.

    These are the special ones, and marks such as `<think>` or `<|User|>` that are added without being special and that
    the template prints. Words or white space among the added tokens are text like any other.

    Args:
        added_tokens: the tokenizer's.
        template_sources: the source texts of the model's chat templates.
    """

    __slots__ = ("_any", "_edges", "_marks", "_patterns", "_tokens")

    def __init__(self, added_tokens: Iterable[AddedToken], template_sources: Sequence[str]) -> None:
        self._tokens = {
            token.content: token
            for token in added_tokens
            if _steers(token) and (token.special or any(token.content in source for source in template_sources))
        }
        special = [content for content, token in self._tokens.items() if token.special]
        self._marks = frozenset(self._tokens.keys() - special)
        # Letters at an edge stay: exchanging every m would change what templates compare. Such tokens count as a whole.
        edges = {edge for content in self._tokens for edge in (content[0], content[-1]) if not edge.isalnum()}
        words = [content for content in self._tokens if content[0].isalnum() and content[-1].isalnum()]
        self._edges = sorted(edges | {content[0] for content in self._tokens})
        self._any = _one_of(self._tokens)
        self._patterns = {
            Scope.EVERYTHING: _one_of([*words, *edges]),
            Scope.ALL_BUT_MARKS: _one_of([*self._marks, *words, *edges]),
            Scope.SPELLED_OUT: _one_of(special),
        }

    def may_be_forged_by(self, value: object) -> bool:
        """Whether any string within `value` has a character that could be a control token's edge."""
        pattern = self._patterns[Scope.EVERYTHING]
        return any(pattern.search(text) for text in _strings(value))

    def spelled_in(self, text: str) -> Iterator[re.Match[str]]:
        """The control tokens in a text, whoever wrote them, from left to right and the longest at each place."""
        return self._any.finditer(text)

    def disguise_for(self, rendering: str) -> Disguise:
        """Private characters that the rendering lacks.

        Raises:
            InvalidRequest: the rendering holds nearly all that there are.
        """
        free = (chr(code) for code in _PRIVATE_CHARACTERS if chr(code) not in rendering)
        private = dict(zip(self._edges, free, strict=False))
        if len(private) < len(self._edges):
            raise InvalidRequest("the texts use up Unicode's private characters; remove some", param="messages")
        return Disguise(private)

    def disguised(self, value: object, disguise: Disguise, scope: Scope) -> object:
        """A copy of nested dicts and lists with every string (keys too) exchanged as `scope` says."""

        def exchange(match: re.Match[str]) -> str:
            found = match[0]
            if scope is Scope.ALL_BUT_MARKS and found in self._marks:
                return found
            return disguise.private[found[0]] + found[1:]

        pattern = self._patterns[scope]

        def walk(part: object) -> object:
            if isinstance(part, str):
                return pattern.sub(exchange, part)
            if isinstance(part, Mapping):
                return {walk(key): walk(item) for key, item in part.items()}
            if isinstance(part, (list, tuple)):
                return [walk(item) for item in part]
            return part

        return walk(value)

    def segments(self, rendering: str, disguised_rendering: str) -> list[Segment]:
        """Cut a rendering so that no control token of a caller is recognised and every one of the template is.

        Cuts lie at the template's control tokens only, where every tokenizer cuts by itself, so the token ids are those
        of the whole text but for the forged tokens.

        Args:
            rendering: the plain text.
            disguised_rendering: as long; differs in the exchanged characters alone.
        """
        segments = []
        start = 0  # Where the segment under way begins.
        last_cut = 0  # The end of the last control token of the template.
        forged = False
        for match in self.spelled_in(rendering):
            first, last = match.start(), match.end() - 1
            if rendering[first] != disguised_rendering[first] or rendering[last] != disguised_rendering[last]:
                if not forged:
                    segments.append(Segment(rendering[start:last_cut], False))
                    start, forged = last_cut, True
                continue
            before, last_cut = self._taken_along(rendering, match)
            if forged:
                segments.append(Segment(rendering[start:before], True))
                start, forged = before, False
        segments.append(Segment(rendering[start:], forged))
        return [segment for segment in segments if segment.text]

    def _taken_along(self, text: str, match: re.Match[str]) -> tuple[int, int]:
        token = self._tokens[match[0]]
        start, end = match.span()
        while token.lstrip and start > 0 and text[start - 1].isspace():
            start -= 1
        while token.rstrip and end < len(text) and text[end].isspace():
            end += 1
        return start, end


def _steers(token: AddedToken) -> bool:
    content = token.content
    if token.special:
        return content.strip() != ""
    edges = content[:1] + content[-1:]
    return len(content) > 2 and not any(edge.isalnum() or edge.isspace() for edge in edges)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


class _Prefix:
    """A node in a tree of words: what may follow a prefix, and whether the prefix itself is a word."""

    __slots__ = ("following", "is_word")

    def __init__(self) -> None:
        self.following: dict[str, _Prefix] = {}
        self.is_word = False

    def pattern(self) -> str:
        """What completes the prefix to a word, as a regular expression that takes the longest way."""
        node, text = self, ""
        # A chain without branches is written out in a loop, so that long words nest no deeper than they branch.
        while len(node.following) == 1 and not node.is_word:
            ((character, node),) = node.following.items()
            text += re.escape(character)
        if not node.following:
            return text
        ways = [re.escape(character) + child.pattern() for character, child in node.following.items()]
        return f"{text}(?:{'|'.join(ways)}){'?' if node.is_word else ''}"


def _one_of(words: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of the words at a place, in time that does not grow with their number."""
    root = _Prefix()
    for word in words:
        node = root
        for character in word:
            node = node.following.setdefault(character, _Prefix())
        node.is_word = True
    return re.compile(root.pattern() if root.following else r"(?!)")
