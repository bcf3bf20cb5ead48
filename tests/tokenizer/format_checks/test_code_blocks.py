"""Faults of fenced code blocks are found, right code has none, and both do not depend on how the text is split."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.tokenizer.format_checks.code_blocks import CodeBlocks
from tests.tokenizer.format_checks.checking import CUTS, faults_of, pieces_of

LANGUAGES = [
    *("python", "js", "json", "c", "c#", "java", "kotlin", "swift", "go", "rust", "bash", "php", "css", "html"),
    *("text", "haskell", ""),
]
# What fences and code are made of, whole and in parts.
SOUP = st.lists(
    st.sampled_from(
        [
            *"()[]{}\"'`#/*<>=\\\n rR$~-@;:|!.",
            *("```", "````", "~~~", "```python\n", "\n```\n", "\n```", "> ```", "- ", "1. ", "  ", "    "),
            *(
                '"""',
                "'''",
                "//",
                "/*",
                "*/",
                "<!--",
                "-->",
                "<<",
                "<<<",
                "${",
                'r#"',
                "'a'",
                "'a",
                "a'",
                "<a",
                "</script",
            ),
            *("a", "1", "x ", "return", "#else", "#", "case", "\r\n", "\\\n", "<script", "url(", "@", "🦙", "é"),
        ]
    ),
    max_size=30,
).map("".join)


def block(language: str, code: str) -> str:
    """A text with a code block."""
    return f"Here it is:\n\n```{language}\n{code}\n```\n\nAnd (that is it.\n"


@given(SOUP, CUTS)
@example("```rust\n')\n```\n", [9, 10, 11, 12])
@example('```python\n"""`', [12, 13])
@example("```js\n``\n```", [7, 8, 9])
def test_any_text(text: str, cuts: list[int]) -> None:
    """In any pieces the same faults are found, each by the character that shows it."""
    whole = faults_of(CodeBlocks, [text])
    assert faults_of(CodeBlocks, pieces_of(text, cuts)) == whole
    assert faults_of(CodeBlocks, list(text)) == whole


@given(st.sampled_from(LANGUAGES), SOUP, CUTS)
def test_any_code(language: str, code: str, cuts: list[int]) -> None:
    """So are they in a block of each language."""
    text = block(language, code)
    whole = faults_of(CodeBlocks, [text])
    assert faults_of(CodeBlocks, pieces_of(text, cuts)) == whole
    assert faults_of(CodeBlocks, list(text)) == whole


def test_python_of_others() -> None:
    """Modules of Python's own library, as blocks of code, have no fault: whatever they hold, they are right."""
    modules = sorted(Path(json.__file__).parent.parent.glob("[a-h]*.py"))
    assert len(modules) > 50
    for module in modules:
        code = module.read_text(encoding="utf-8")
        assert faults_of(CodeBlocks, [f"``````python\n{code}\n``````\n"]) == [], module


RIGHT = {
    "python": [
        "print('a)', \"b]\")  # don't (",
        'def f():\n    """It\'s (not) [closed"""\n    return {"a": \'"\'}',
        "x = r'\\d(' + '''\n(\n''' + \"a\\\"(\"",
        "x = 'a\\\nb'",
        'x = ""\ny = ("",)',
    ],
    "js": [
        "const a = b / c; // don't (\nconst d = `${e(`f)`)} (`;",
        "const a = /[/\"(]+'/.test(x) ? 'y' : \"(\";",
        "return /'/;",
        "const a = <p>Don't</p>;",
        "x = { a: [1, 2], /* ) */ b: '\\'' };",
        "if (a < b && c > d) { e(); }",
    ],
    "ts": ["const a: Array<string> = ['a'];", "const f = <T>(x: T) => x;"],
    "json": ['{"a": ["(", "\\"["]} // it\'s (fine'],
    "c": [
        "char a = '\"', b = '\\'', c = '('; /* ( */ // '\nchar *s = \"(\\\"\";",
        "#error Don't\n#define X (\\\n  '\nint x;",
        "#if A\nif (a) {\n#else\nif (b) {\n#endif\n}",
        "long x = 1'000'000;",
        'auto s = R"(")";',
    ],
    "c#": ['var a = @"C:\\";\nvar b = """\n"(\n""";', "#region Don't\n#endregion"],
    "java": ['String s = """\n  "(" it\'s\n  """; char c = \'"\';'],
    "kotlin": ['val s = """\\""" /* /* ( */ ( */'],
    "swift": ['let s = "\\(a)" // don\'t'],
    "go": ["s := `\\(`\nr := '\\''\nt := \"(\\\"\""],
    "rust": [
        "fn f<'a>(x: &'a str) -> &'static str { let c = '\"'; let d = '\\''; let p = '('; x }",
        "'outer: loop { break 'outer; } /* /* ( */ ( */",
        'let s = r#"("#; let t = ")";',
        'let s = r"\\"; let t = "\n(";',
    ],
    "bash": [
        "# don't (\necho 'it is \"(' \"a 'b' \\\" (\" \\( \\' $'\\'(' # )",
        "case $x in\n  a) echo b;;\nesac",
        'x="$(echo "[")" && echo ${#x} $(( 1 + 2 ))',
        "cat <<EOF\nDon't (\nEOF",
    ],
    "php": ["<?php # don't\n$a = 'b\\'('; // ("],
    "css": ["a { content: '('; } /* ) */ b { background: url(data:x'); }"],
    "html": [
        "<!-- don't < -->\n<p class=\"a'>\" id='b\"'>It's a < b (</p><br/>",
        "<script>if (a < b) { x = '</p>' }</script>\n<style>a > b { c: '<d' }</style>",
        "{% if a < b %}",
    ],
    "text": ["1) don't (", ":-("],
    "haskell": ["1) first\n(a) [b] {c} :)"],
    "": ["a) it's\n  b) \"so"],
}


@pytest.mark.parametrize(("language", "code"), [(name, code) for name, codes in RIGHT.items() for code in codes])
def test_right_code(language: str, code: str) -> None:
    """Code that is right has no fault, and neither has what cannot be judged without parsing it."""
    for pieces in ([block(language, code)], list(block(language, code))):
        assert faults_of(CodeBlocks, pieces) == []


WRONG = [
    ("python", "print((1)", "(", "'(' is not closed"),
    ("python", "print(1)]", "]", "']' closes nothing"),
    ("python", "x = [1, 2)", ")", "')' does not close '['"),
    ("python", "x = 'a\ny = 1", "'", '"\'" is not closed on its line'),
    ("python", 'x = """a\n"" \'\'\'', '"""a', '\'"""\' is not closed'),
    ("python", "# (\nx = {", "{", "'{' is not closed"),
    ("js", "f(`${a[1}`)", "}", "'}' does not close '['"),
    ("js", "const a = `b ${c} (", "`", "'`' is not closed"),
    ("js", "/* (", "/*", "'/*' is not closed"),
    ("js", "a(/[(]/, 'b'", "(/", "'(' is not closed"),
    ("json", '{"a": [1, 2}', "}", "'}' does not close '['"),
    ("json", '{"a\n": 1}', '"a', "'\"' is not closed on its line"),
    ("c", 'printf("a);', '"', "'\"' is not closed on its line"),
    ("c", "#define A (\nint main( {", "{", "'{' is not closed"),
    ("c++", "f(1'000, '(' ;", "(1", "'(' is not closed"),
    ("java", 's = """\n";', '"""', '\'"""\' is not closed'),
    ("go", "s := `(", "`", "'`' is not closed"),
    ("rust", "/* /* */", "/*", "'/*' is not closed"),
    ("rust", "fn f<'a>(x: &'a str {", "{", "'{' is not closed"),
    ("rust", "let c = '\\'; }", "'\\", '"\'" is not closed on its line'),
    ("rust", "} // '", "}", "'}' closes nothing"),
    ("bash", 'echo "a $(b "c") (', '"a', "'\"' is not closed"),
    ("bash", "f() { echo 'a", "'a", '"\'" is not closed'),
    ("bash", "if [ -f a; then b; fi", "[", "'[' is not closed"),
    ("php", "f('a', [1);", ")", "')' does not close '['"),
    ("css", "a { b: c;", "{", "'{' is not closed"),
    ("html", '<a href="b>c</a>', '"', "'\"' is not closed"),
    ("html", "<p>a</p><br", "<br", "'<' is not closed"),
    ("html", "<!-- a ->", "<!--", "'<!--' is not closed"),
    ("html", "<script>a", "<script", "'<script' is not closed"),
    ("haskell", "f (a [b)", ")", "')' does not close '['"),
    ("", "f(a", "(", "'(' is not closed"),
]


@pytest.mark.parametrize(("language", "code", "place", "message"), WRONG)
def test_wrong_code(language: str, code: str, place: str, message: str) -> None:
    """What is not in pairs is one fault, at the place of the bracket or quote, shown by the first character after which
    it cannot be mended."""
    text = block(language, code)
    begin = text.index("\n", text.index("```")) + 1
    for pieces in ([text], list(text)):
        (fault,) = faults_of(CodeBlocks, pieces)
        found = text.index(place, begin)
        assert (fault.position, fault.message) == (found, message)
        if "on its line" in message:
            assert fault.shown_at == text.index("\n", found)
        elif "is not closed" in message:
            assert text[: fault.shown_at].endswith("\n```")
        else:
            assert fault.shown_at == fault.position


def test_once_a_block() -> None:
    """Each block tells its first fault alone; text between blocks is not looked at."""
    text = '(\n```python\n)]}\n```\n) ` "\n~~~js\n(]\n~~~\n```\n()\n```\n'
    faults = faults_of(CodeBlocks, list(text))
    assert [text[fault.position] for fault in faults] == [")", "]"]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n",
        "```python",
        "```",
        "~~~\nx\n```\n",
        "````\nx\n```\n",
        "```\nx\n``` y\n",
        "```\nx\n        ```",
        "- a\n\n      ```\n      x\n",
        "```python\nprint((\n",
    ],
)
def test_open_blocks(text: str) -> None:
    """A block that is not closed at the end of the text is a fault at its fence, whatever is in it."""
    for pieces in ([text], list(text)):
        (fault,) = faults_of(CodeBlocks, pieces)
        fence = min(text.find(fence) for fence in ("```", "~~~") if fence in text)
        assert (fault.position, fault.message, fault.shown_at) == (fence, "the code block is not closed", len(text))


@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n```",
        "```\r\nx\r\n```\r\n",
        "```\nx\n````` \n",
        "~~~ a ``` b\nx\n~~~",
        "1. a\n   ```python\n   x = '('\n   ```\n",
        "- ```python\n  x\n  ```\n",
        "> ```python\n> x = '('\n> ```\n",
        "`` ` ``",
        "```a``` is inline",
        "    x ```",
        "a```",
        "",
        "``",
        '```python\ndef f():\n    """\n    ```\n    (\n    ```\n    """\n```\n',
        "```python\n" + " " * 300 + "```\n```\n",
    ],
)
def test_closed_blocks(text: str) -> None:
    """Blocks that Markdown takes as closed, in lists and quotes too, and what begins none, are no faults."""
    for pieces in ([text], list(text)):
        assert faults_of(CodeBlocks, pieces) == []


def test_time_is_linear() -> None:
    """Much that begins something and does not end it, in small pieces, is read in time: nothing is read twice."""
    for piece in ("- ", "> ", " ", "`", "(", "'", "/", "<", '"""', "# ", "1."):
        text = "```js\n" + piece * (50_000 // len(piece)) + "\n" + piece * 200
        faults_of(CodeBlocks, [text[at : at + 4] for at in range(0, len(text), 4)])
