"""A summary as the model writes it: one stream at the engine, whose text is gathered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.chassis.errors import ServiceError
from services.tokenizer.choice import Choice, ChoiceReader
from services.tokenizer.events import EngineSink, Finish, Parsed, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import NewStage, OutputStage, staged
from services.tokenizer.parsed_choice import ParsedChoice
from services.tokenizer.prompt import ChatOutput
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_use import ToolUse


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote, without its reasoning, and what it took."""

    text: str
    usage: Usage


NOTHING = Written("", Usage(0, 0, 0))


class SummaryStream:
    """One stream; it is a choice's reader.

    Args:
        tokenizer: of the model.
        prompt_token_ids: what it was asked.
        new_stages: of the output filters, which hold for a summary too.
    """

    def __init__(
        self, tokenizer: TextTokenizer, prompt_token_ids: Sequence[int], new_stages: Sequence[NewStage] = ()
    ) -> None:
        self._texts: list[str] = []
        self._written: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        stages: Sequence[OutputStage] = staged(0, self, new_stages) if new_stages else ()
        self._choice = _choice(tokenizer, prompt_token_ids, stages[0] if stages else self)
        for stage in stages:
            stage.choice = self._choice

    def start(self, start_stream: Callable[[EngineSink], Callable[[], None]]) -> None:
        """Begin it with what takes a sink and returns what cancels the stream.

        Raises:
            ServiceError: the engine cannot be asked.
        """
        self._choice.cancel_stream = start_stream(self._choice)

    async def written(self) -> Written:
        """Wait for the end of the stream; where it was cancelled, there is nothing.

        Raises:
            ServiceError: the stream failed.
        """
        return await self._written

    def cancel(self) -> None:
        """End it, at the engine too. One that has ended is left alone."""
        # The future says less: it is cancelled with the task that waits for it.
        if not self._choice.ended:
            self._choice.cut()
        if not self._written.done():
            self._written.set_result(NOTHING)

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """Nobody is told."""

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Keep the text."""
        self._texts.append(text)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """All is there, or what a bound on its length or a filter let pass."""
        if not self._written.done():
            self._written.set_result(Written("".join(self._texts).strip(), finish.usage))

    def choice_failed(self, error: ServiceError) -> None:
        """There will be no summary."""
        if not self._written.done():
            self._written.set_exception(error)


def _choice(tokenizer: TextTokenizer, prompt_token_ids: Sequence[int], reader: ChoiceReader) -> Choice:
    new_parser = ChatOutput(ToolUse()).parsers(tokenizer, prompt_token_ids)
    if new_parser is None:
        return Choice(0, reader, tokenizer.decoder(prompt_token_ids), None, False)
    return ParsedChoice(0, reader, tokenizer.parsing_decoder(prompt_token_ids), None, False, new_parser(), False)
