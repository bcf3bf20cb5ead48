"""A streamed answer, told from its bytes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.bench.token_stream import Failure, TokenStream, Usage, error_kind
from tests.cli.bench.sse_server import DONE, event, token, usage

TRICKY = '"finish_reason":null "role":"x" \n\n data: [DONE]\n\n "error":{} \r\n é \u2028'
ROLE = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
CLOSING = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def delta(text: str, finish_reason: str | None = None, **more: Any) -> bytes:
    """A chunk of a chat."""
    choice = {"index": 0, "delta": {"content": text} | more, "finish_reason": finish_reason}
    return event({"choices": [choice]})


def read(*bodies: bytes, choices: int = 1, cancel_after: int | None = None) -> TokenStream:
    """A stream that was fed pieces, the first at 1 s, the next at 2 s, and then came to its end."""
    stream = TokenStream(choices, cancel_after)
    for now, body in enumerate(bodies, 1):
        if stream.feed(body, float(now)):
            return stream
    stream.end(float(len(bodies) + 1))
    return stream


CHAT = ROLE + b": keep-alive\n\n" + delta("one") + delta(TRICKY) + delta("") + CLOSING + usage(3) + DONE


@st.composite
def split_bodies(draw: st.DrawFn) -> list[bytes]:
    """A whole chat in any of the three line ends, cut anywhere."""
    body = CHAT.replace(b"\n", draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=12)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@given(split_bodies())
def test_cuts_and_line_ends_do_not_matter(bodies: list[bytes]) -> None:
    """However a stream is cut and whichever line end it has, the same is read from it."""
    stream = read(*bodies)
    assert stream.failure is None
    assert stream.chunks == 3
    assert stream.usage == Usage(5, 3, 2)
    assert stream.done_at is not None
    assert list(stream.times) == sorted(stream.times)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8), st.booleans())
def test_text_is_never_mistaken_for_structure(texts: list[str], spaced: bool) -> None:
    """Whatever the model says, and with spaces in the JSON or without, a chunk is one token."""
    separators = (", ", ": ") if spaced else (",", ":")
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in texts]
    body = b"".join(b"data: %b\n\n" % json.dumps(chunk, separators=separators).encode() for chunk in chunks)
    assert read(body + DONE).chunks == len(texts)


def test_times_are_those_of_the_buffers() -> None:
    """A chunk has the time of the buffer that completes it; two in one buffer have the same."""
    whole = delta("one")
    stream = read(ROLE, whole[:20], whole[20:] + delta("two"), delta("three"), DONE)
    assert list(stream.times) == [3.0, 3.0, 4.0]
    assert stream.done_at == 5.0


@pytest.mark.parametrize(
    ("chunk", "counts"),
    [
        (ROLE, False),
        (CLOSING, False),
        (usage(3), False),
        (b": keep-alive\n\n", False),
        (b"event: ping\nid: 4\n\n", False),
        (event({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}), False),
        (delta("one"), True),
        (delta(""), True),
        (delta("last", "length"), True),
        (delta("one", role="assistant"), True),
        (delta("", reasoning_content="so"), True),
        (event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}}]}), True),
        (event({"choices": [{"index": 0, "text": "x", "logprobs": None, "finish_reason": None}]}), True),
        (event({"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [1]}, "finish_reason": "stop"}]}), True),
        (b"data:" + delta("no space")[6:], True),
        (b": comment\nevent: message\n" + delta("after other fields"), True),
        (b"\n\n\n" + delta("after empty lines"), True),
    ],
)
def test_chunks_with_tokens_count(chunk: bytes, counts: bool) -> None:
    """The role alone, an empty end, the usage and comments bring no token; everything else does."""
    assert read(chunk, DONE).chunks == counts


def test_chunks_are_kept_apart_by_choice() -> None:
    """With several choices each has times of its own, so that gaps are between chunks of one answer."""
    stream = read(token(index=0) + token(index=1), token(index=0), token(index=1) + DONE, choices=2)
    assert {index: list(times) for index, times in stream.by_choice.items()} == {0: [1.0, 2.0], 1: [1.0, 3.0]}
    assert stream.chunks == 4


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (token(), Failure("stream ended without [DONE]", "after 1 chunks with tokens")),
        (token() + b"data: [DONE]\n", Failure("stream ended without [DONE]", "after 1 chunks with tokens")),
        (b"", Failure("stream ended without [DONE]", "after 0 chunks with tokens")),
        (DONE + token("late"), Failure("event after [DONE]", token("late")[6:].decode().strip())),
        (b"data: {\n\n", Failure("malformed event", "{")),
        (b"data: 1\n\n", Failure("malformed event", "1")),
        (b'data: {"choices":[1]}\n\n', Failure("malformed event", '{"choices":[1]}')),
        (b'data: {"usage":{"tokens":1}}\n\n', Failure("malformed event", '{"usage":{"tokens":1}}')),
        (
            token() + event({"error": {"message": "the engine\ndied", "type": "server_error", "code": None}}),
            Failure("error event server_error", "the engine died"),
        ),
        (event({"error": {"message": "m", "type": "t", "code": "c"}}) + DONE, Failure("error event c", "m")),
        (event({"error": "plain"}), Failure("error event", "plain")),
    ],
)
def test_bad_ends_are_failures(body: bytes, failure: Failure) -> None:
    """A stream that has no proper end, says that it failed or is no stream of chunks is told as what it is."""
    assert read(body).failure == failure


@pytest.mark.parametrize("choices", [1, 2])
def test_reader_leaves_after_its_chunks(choices: int) -> None:
    """Once the planned number of chunks has come, nothing more is read, though it lies there."""
    stream = TokenStream(choices, 2)
    assert not stream.feed(token(), 1.0)
    assert stream.feed(token() + token() + token(), 2.0)
    assert stream.is_cut and stream.failure is None
    assert list(stream.times) == [1.0, 2.0]


def test_chunk_costs_next_to_nothing() -> None:
    """A chunk in the middle is read in less than 4 µs of CPU, a fraction of parsing it: the load shares the machine."""
    chunk = delta("word", id="chatcmpl-0123456789abcdef", object="chat.completion.chunk", model="m", created=1)
    stream = TokenStream(1, None)

    def microseconds() -> float:
        start = time.process_time()
        for _ in range(5000):
            stream.feed(chunk, 1.0)
        return (time.process_time() - start) / 5000 * 1e6

    assert min(microseconds() for _ in range(5)) < 4
    assert stream.chunks == 25_000


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (429, b'{"error":{"message":"wait","type":"rate_limit_error","code":null}}', ("rate_limit_error", "wait")),
        (404, b'{"error":{"message":"no","type":"t","code":"model_not_found"}}', ("model_not_found", "no")),
        (502, b"<html>Bad\n Gateway</html>", ("", "<html>Bad Gateway</html>")),
        (500, b'{"detail":"x"}', ("", '{"detail":"x"}')),
        (500, b"", ("", "")),
    ],
)
def test_refusals_are_told_by_status_and_code(status: int, body: bytes, failure: tuple[str, str]) -> None:
    """The kind of a refusal is its status and OpenAI's code or type; a body of another form is shown."""
    name, message = failure
    assert error_kind(status, body) == Failure(f"HTTP {status} {name}".strip(), message)
