"""Whether brackets and quotes of a program's text are in pairs, found while it comes."""

from __future__ import annotations

from dataclasses import dataclass

from services.tokenizer.format_checks.languages import BRACKETS, Language, Rule, Span
from services.tokenizer.format_checks.port import Fault

# Rules look no further back.
_CONTEXT_CHARS = 256


@dataclass(frozen=True, slots=True)
class _Open:
    """What is open: a bracket or, with a span, what the span began with."""

    opening: str
    position: int
    span: Span | None


class CodeText:
    """Checks one text. It finds one fault, and none where its language's rules do not tell what a text is.

    Args:
        language: its rules.
        position: characters of the whole text before it.
    """

    def __init__(self, language: Language, position: int) -> None:
        self._language = language
        self._read = position
        # What cannot be judged before more has come: the begin of several characters that belong together.
        self._held = ""
        self._context = ""
        self._open: list[_Open] = []
        # Place of the last character that had to be seen for what was decided.
        self._seen = 0
        self._over = not language.rules and not language.brackets

    def feed(self, text: str) -> Fault | None:
        """Take the next characters; return the fault that they show, unless one was found before."""
        return None if self._over else self._take(self._held + text, last=False)

    def finish(self) -> Fault | None:
        """The text is over: return the fault that this shows, unless one was found before."""
        fault = None if self._over else self._take(self._held, last=True)
        if self._over:
            return fault
        self._over = True
        while self._open:
            still = self._open.pop()
            if still.span is None or still.span.judged:
                return Fault(still.position, f"{still.opening!r} is not closed", self._read)
            if still.span.closing != "\n":
                # Nobody knows what it was.
                return None
        return None

    def _take(self, text: str, last: bool) -> Fault | None:
        at: int | None = 0
        read = 0
        while at is not None and at < len(text) and not self._over:
            span = self._open[-1].span if self._open else None
            step = self._code(text, at, last) if span is None else self._inside(span, text, at, last)
            if isinstance(step, Fault):
                self._over = True
                return step
            at = step
            read = read if at is None else at
        self._context = (self._context + text[:read])[-_CONTEXT_CHARS:]
        self._held = text[read:]
        self._read += read
        return None

    def _code(self, text: str, at: int, last: bool) -> int | Fault | None:
        """Read up to the next thing in code that matters, and that; None: more must come before it is known."""
        starts = self._language.starts
        found = starts.characters.search(text, at)
        if found is None:
            return len(text)
        at = found.start()
        if not last and starts.may_become(text, at):
            return None
        for rule in self._language.rules:
            if not text.startswith(rule.opening, at):
                continue
            if not last and len(text) - at < rule.needs:
                return None
            self._seen = max(self._seen, self._read + at + rule.needs - 1)
            if self._holds(rule, text, at):
                if rule.unclear:
                    self._over = True
                elif rule.begins is not None:
                    self._open.append(_Open(rule.opening, self._read + at, rule.begins))
                return at + max(len(rule.opening), rule.needs if rule.begins is None else 0)
        return self._bracket(text, at)

    def _holds(self, rule: Rule, text: str, at: int) -> bool:
        if rule.before is not None and rule.before.search(self._before(text, at)) is None:
            return False
        return rule.after is None or rule.after.match(text, at) is not None

    def _before(self, text: str, at: int) -> str:
        return (self._context + text[max(0, at - _CONTEXT_CHARS) : at])[-_CONTEXT_CHARS:]

    def _bracket(self, text: str, at: int) -> int | Fault:
        bracket, position = text[at], self._read + at
        if bracket not in self._language.brackets:
            return at + 1
        if bracket not in BRACKETS:
            self._open.append(_Open(bracket, position, None))
            return at + 1
        if self._open and self._open[-1].opening[-1] == BRACKETS[bracket]:
            self._open.pop()
            return at + 1
        if bracket in self._language.unclear_closing:
            self._over = True
            return at + 1
        no_bracket = self._language.no_bracket
        if no_bracket is not None and no_bracket.search(self._before(text, at)) is not None:
            return at + 1
        told = f"does not close {self._open[-1].opening!r}" if self._open else "closes nothing"
        return Fault(position, f"{bracket!r} {told}", max(position, self._seen))

    def _inside(self, span: Span, text: str, at: int, last: bool) -> int | Fault | None:
        """Read up to the next thing in a span that matters, and that; None: more must come before it is known."""
        found = span.starts.characters.search(text, at)
        if found is None:
            return len(text)
        at = found.start()
        if span.escapes and text[at] == "\\":
            return at + 2 if last or at + 1 < len(text) else None
        if not last and span.starts.may_become(text, at):
            return None
        if text.startswith(span.closing, at):
            self._open.pop()
            return at + len(span.closing)
        if span.nests is not None and text.startswith(span.nests, at):
            self._open.append(_Open(span.nests, self._read + at, span))
            return at + len(span.nests)
        for opening, inner in span.inner.items():
            if text.startswith(opening, at):
                self._open.append(_Open(opening, self._read + at, inner))
                return at + len(opening)
        if text[at] == "\n" and not span.lines:
            if not span.judged:
                self._over = True
                return at
            begin = self._open[-1]
            return Fault(begin.position, f"{begin.opening!r} is not closed on its line", self._read + at)
        return at + 1
