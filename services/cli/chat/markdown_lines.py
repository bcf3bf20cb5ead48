"""Markdown as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import COLOR_SYSTEMS, Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax

from services.cli.chat.live_lines import Line
from services.cli.control_text import printable


class MarkdownLines:
    """Renders Markdown with the colours that the terminal behind a stream has.

    Args:
        stream: the terminal.
        parser: reads the Markdown.
    """

    def __init__(self, stream: TextIO, parser: MarkdownIt) -> None:
        self._parser = parser
        self._console = Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)
        self._colors = COLOR_SYSTEMS.get(self._console.color_system or "")

    def lines(self, text: str, width: int) -> Sequence[Line]:
        """Return the lines of a text, each at most `width` columns wide, with an empty one between blocks."""
        options = self._console.options.update(width=width)
        lines: list[Line] = []
        for block in _blocks(self._parser.parse(printable(text))):
            rows = [self._line(row) for row in self._console.render_lines(_Block(block), options, pad=False)]
            # Some kinds of blocks bring empty lines along.
            while rows and not rows[0].text:
                rows.pop(0)
            while rows and not rows[-1].text:
                rows.pop()
            lines += [Line("", 0), *rows] if lines and rows else rows
        return lines

    def dim(self, text: str) -> str:
        """Return a text as the terminal shows it dimly. Its control characters are taken out."""
        return self._styled(text, Style(dim=True))

    def _line(self, row: Sequence[Segment]) -> Line:
        # Entities such as &#27; become characters only when the Markdown is read, so this is the place to look.
        segments = [Segment(printable(part.text), part.style) for part in row if not part.control]
        # Rich fills up lines, and whoever copies them would copy that, too.
        while segments and not (segments[-1].style or Style()).bgcolor:
            last = segments.pop()
            if text := last.text.rstrip(" "):
                segments.append(Segment(text, last.style))
                break
        return Line(
            "".join(self._styled(part.text, part.style) for part in segments), Segment.get_line_length(segments)
        )

    def _styled(self, text: str, style: Style | None) -> str:
        if style is None:
            return printable(text)
        shown = style.without_color if self._console.no_color else style
        return shown.render(printable(text), color_system=self._colors)


class _LeftHeading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _BareCode(CodeBlock):
    """Code without a frame or a background, which would be copied along with it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        yield Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")


class _Block(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _BareCode,
        "code_block": _BareCode,
    }

    def __init__(self, tokens: Sequence[Token]) -> None:
        # A link is shown with its address: what a terminal hides behind a text could lead anywhere.
        super().__init__("", hyperlinks=False)
        self.parsed = list(tokens)


def _blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []
