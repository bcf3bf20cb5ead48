"""Finding tags in text that comes in pieces."""

from __future__ import annotations

import re


class Tags:
    """A set of tags; immutable, so that parsers may share it."""

    __slots__ = ("_longest", "_pattern", "_prefixes")

    def __init__(self, *tags: str) -> None:
        self._pattern = re.compile("|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True)))
        self._prefixes = frozenset(tag[:end] for tag in tags for end in range(1, len(tag)))
        self._longest = max(len(tag) for tag in tags)

    def split(self, text: str) -> tuple[str, str | None, str]:
        """Text before the first tag, the tag, and what follows.

        Without a tag, what follows is the longest suffix that may still become one.
        """
        found = self._pattern.search(text)
        if found is not None:
            return text[: found.start()], found.group(), text[found.end() :]
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-size:] in self._prefixes:
                return text[:-size], None, text[-size:]
        return text, None, ""
