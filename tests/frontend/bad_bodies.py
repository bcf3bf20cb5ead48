"""Bodies that are not one clear JSON object, each with a part of the text that its error has."""

from __future__ import annotations

_PREFIX = b'{"model": "scripted", "messages": [{"role": "user", "content": "x"}], '

BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the body is empty"),
    "truncated": (_PREFIX, "not valid JSON"),
    "not an object": (b"[1]", "must be a JSON object"),
    "text": (b"hello", "not valid JSON"),
    "two documents": (b"{}{}", "not valid JSON"),
    "nested 10,000 deep": (_PREFIX + b'"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "not valid JSON"),
    "nested 65 deep": (_PREFIX + b'"x": ' + b"[" * 64 + b"]" * 64 + b"}", "more than 64 deep"),
    "NaN": (_PREFIX + b'"temperature": NaN}', "not valid JSON"),
    "Infinity": (_PREFIX + b'"temperature": Infinity}', "not valid JSON"),
    "a float beyond a double": (_PREFIX + b'"temperature": 1e999}', "not valid JSON"),
    "duplicate names": (_PREFIX + b'"n": 1, "n": 2}', "one name twice"),
    "duplicate names, one escaped": (_PREFIX + b'"n": 1, "\\u006e": 2}', "one name twice"),
    "duplicate names deep inside": (_PREFIX + b'"metadata": {"a": [{"b": 1, "b": 1}]}}', "one name twice"),
    "invalid UTF-8": (b'{"model": "\xff"}', "not valid JSON"),
    "UTF-8 of a surrogate": (b'{"model": "\xed\xa0\x80"}', "not valid JSON"),
    "unpaired surrogate": (_PREFIX + b'"stop": "\\ud800"}', "not valid JSON"),
    "byte order mark": (b"\xef\xbb\xbf{}", "not valid JSON"),
    "integer beyond 64 bits": (_PREFIX + b'"seed": 36893488147419103232}', "beyond 64 bits"),
    "integer beyond 64 bits in template kwargs": (
        _PREFIX + b'"chat_template_kwargs": {"x": [99999999999999999999]}}',
        "beyond 64 bits",
    ),
}
