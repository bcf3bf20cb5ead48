"""What the scripted engine of the page's tests says, by the messages that ask for it."""

from __future__ import annotations

MARKDOWN = """# A short tour

Here is **bold**, *italic*, ~~gone~~ and `inline code`, with a link to <https://example.org/page> and a picture: \
![a cat](https://example.org/cat.png).

1. First point
2. Second point
   - one
   - two

> A quotation that goes over a line, to see how it looks.

```python
def distance(a: Point, b: Point) -> float:
    # The usual formula, with a comment that is long enough to go beyond the edge of the narrow screen of a phone.
    return ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5
```

| Language | Year | Typing | What it is used for most, in a few words |
| --- | ---: | :---: | --- |
| Python | 1991 | dynamic | science, scripting, services |
| Rust | 2015 | static | systems, tools |

See [the manual][manual] too.

[manual]: https://example.org/manual
"""

# Each would run a script or ask another host for something, if it were let through.
HOSTILE = """<img src=x onerror="window.hacked=1">

<script>window.hacked=1</script>

[a link](javascript:window.hacked=1) [another](data:text/html,<script>window.hacked=1</script>)

[relative](/v1/models) <a href="javascript:window.hacked=1">raw</a>

![picture](javascript:window.hacked=1) ![picture](http://192.0.2.1/pixel.png)

<iframe src="http://192.0.2.1/"></iframe><svg onload="window.hacked=1"></svg>

<style>body{display:none}</style>

```html"onmouseover=window.hacked=1
<img src=x onerror="window.hacked=1">
```

`<img src=x onerror="window.hacked=1">` and <https://example.org/"onmouseover="window.hacked=1">

| <img src=x onerror="window.hacked=1"> | b |
| --- | --- |
| [x](vbscript:window.hacked=1) | <form action="http://192.0.2.1/"><input name=a></form> |
"""

NUMBERS = " ".join(str(number) for number in range(1, 41)) + "."

FORMATTED = {"show the tour": MARKDOWN, "attack": HOSTILE, "count to forty": NUMBERS, "count slowly": NUMBERS}


def long_code(functions: int = 420) -> str:
    """One block of code; each function has about 25 tokens."""
    return "".join(f"def area_{number}(a, b):\n    return a * b + {number}  # an area\n" for number in range(functions))


def long_answer(sections: int = 104) -> str:
    """Markdown with all kinds of blocks; each section has about a hundred tokens."""
    parts = []
    for number in range(sections):
        parts.append(f"## Section {number}")
        parts.append("This is a sentence with **some** markdown in it, and it goes on for a little while. " * 3)
        parts.append(f"- item {number}.1\n- item {number}.2 with `code`")
        if number % 5 == 0:
            parts.append(f"```python\ndef section_{number}():\n    return {number}\n```")
    parts.append("This is the end.")
    return "\n\n".join(parts)
