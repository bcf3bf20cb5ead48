"""An answer as one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from services.frontend.context_policy import context_object
from services.frontend.logprobs import TokenLogprob, moved
from services.frontend.shapes import Choice
from services.frontend.sink import Detail, Finished, Started
from services.frontend.tally import Tally
from services.frontend.tool_calls import ToolCallPiece


class CollectSink:
    """Gathers a generation's events.

    Args:
        choices: number of choices of all prompts.
        prompts: number of prompts.

    Attributes:
        members: of the answer's object, beside OpenAI's.
    """

    def __init__(self, choices: int, prompts: int = 1) -> None:
        self._per_prompt = choices // prompts
        self._texts: list[list[str]] = [[] for _ in range(choices)]
        self._reasonings: list[list[str]] = [[] for _ in range(choices)]
        # Of the echoed prompt, by choice.
        self._prompt_characters = [0] * choices
        self._logprobs: list[list[TokenLogprob]] = [[] for _ in range(choices)]
        self._tool_calls: list[list[ToolCallPiece]] = [[] for _ in range(choices)]
        self._ends: dict[int, Finished] = {}
        self._error: Exception | None = None
        self._over = asyncio.Event()
        self.model = ""
        self.members: dict[str, Any] = {}
        self.tally = Tally(choices, prompts)

    def started(self, started: Started) -> None:
        """Keep the name of the model that answers, and what is told of the prompt."""
        self.model = started.model
        if started.context is not None:
            self.members["context"] = context_object(started.context)
        for index in range(started.first_choice, started.first_choice + self._per_prompt):
            self._prompt_characters[index] = len(started.prompt_text)
            self._texts[index].append(started.prompt_text)
            self._logprobs[index] += started.prompt_logprobs
        self.tally.start(started)

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        """Keep a piece of a choice."""
        self.tally.add(len(token_ids))
        self._texts[index].append(text)
        if detail is not None:
            self._reasonings[index].append(detail.reasoning)
            self._tool_calls[index] += detail.tool_calls
            if detail.logprobs:
                self._logprobs[index] += moved(detail.logprobs, self._prompt_characters[index])
        return True

    def finished(self, finished: Finished) -> None:
        """Keep the end of a choice."""
        self._ends[finished.index] = finished
        self.tally.end(finished)
        if self.tally.complete:
            self._over.set()

    def failed(self, error: Exception) -> None:
        """End the whole with an error."""
        self._error = error
        self._over.set()

    async def choices(self) -> list[Choice]:
        """Wait for the end of all choices and return them in order.

        Raises:
            ServiceError: the generation failed.
            ClientGone: the caller left.
        """
        await self._over.wait()
        if self._error is not None:
            raise self._error
        return [
            Choice(
                "".join(texts), "".join(reasonings), self._ends[index], self._logprobs[index], self._tool_calls[index]
            )
            for index, (texts, reasonings) in enumerate(zip(self._texts, self._reasonings, strict=True))
        ]
