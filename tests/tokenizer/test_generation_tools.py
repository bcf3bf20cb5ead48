"""Chats whose output is enforced or refused, over a recording engine side."""

from __future__ import annotations

import pytest

from services.chassis.errors import Unsupported
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.output_parsers.selection import ParserNames
from services.tokenizer.prompt import ChatOutput, ChatPrompt
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_use import Tool, ToolMode, ToolUse
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf
from tests.tokenizer.recorded_streams import Setup

TOOL = Tool("f", None, {"type": "object"})
CHAT = ChatPrompt([{"role": "user", "content": "Hi"}], True, False, {}, 2)
STOPPED = Finish(FinishReason.STOP, None, Usage(0, 0, 0))


@pytest.mark.parametrize(
    ("use", "said", "expected"),
    [
        (ToolUse(ToolMode.FUNCTION, (TOOL,), "f"), '{"a": "<think>"}', [("f", '{"a": "<think>"}')]),
        (
            ToolUse(ToolMode.REQUIRED, (TOOL,)),
            '[{"name": "f", "parameters": {"a": 1}}, {"name": "f", "parameters": {}}]',
            [("f", '{"a": 1}'), ("f", "{}")],
        ),
    ],
)
@pytest.mark.parametrize("name", [SMOLLM2, "qwen3"])
async def test_enforced_calls(
    tokenizer_of: TokenizerOf, name: str, use: ToolUse, said: str, expected: list[tuple[str, str]]
) -> None:
    """The output that the engine enforces gives calls and nothing else, whatever the model's own format, in each
    choice; the ids of all calls differ."""
    tokenizer = tokenizer_of(name)
    setup = Setup(TextModel("m", tokenizer, context_length=1000))
    await setup.begin(prompt=CHAT, n=2, chat_output=ChatOutput(use))
    for sink in setup.streams.sinks:
        sink.started(1, 0)
        for token_id in tokenizer.encode(said, False):
            sink.delta([token_id], False)
        sink.finished(STOPPED)
    assert all(event[3] == "" for event in setup.sink.of("delta"))
    pieces = [piece for parsed in setup.sink.parsed if parsed is not None for piece in parsed.tool_calls]
    first = [piece for piece in pieces if piece.id is not None]
    assert len({piece.id for piece in first}) == len(first) == 2 * len(expected)
    whole = "".join(piece.arguments for piece in pieces)
    assert whole == "".join(arguments for _, arguments in expected) * 2
    assert [piece.name for piece in first] == [name for name, _ in expected] * 2
    finishes = [event[2] for event in setup.sink.of("finished")]
    assert [finish.reason for finish in finishes if isinstance(finish, Finish)] == [FinishReason.TOOL_CALLS] * 2


async def test_an_unknown_format_is_refused(files_of: FilesOf) -> None:
    """Where the model may call but how it does is not known, nothing is started at the engine."""
    tokenizer = TextTokenizer(files_of(SMOLLM2), ParserNames(tools="none"))
    setup = Setup(TextModel("m", tokenizer, context_length=1000))
    await setup.begin(prompt=CHAT, chat_output=ChatOutput(ToolUse(ToolMode.AUTO, (TOOL,))))
    assert isinstance(setup.sink.error, Unsupported)
    assert (setup.streams.asked, setup.admission.active) == ([], 0)
