"""From a generation's prompt to token ids that fit the model's context."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import structlog

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.fitting import Fitting
from services.tokenizer.context.summary_stream import NOTHING, SummaryStream, Written
from services.tokenizer.context.window import answer_room
from services.tokenizer.context_policy import ContextPolicyKind
from services.tokenizer.events import ContextReport, EngineSink
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.output_stage import NewStage
from services.tokenizer.prompt import ChatPrompt, Prompt
from services.tokenizer.prompt_detail import check_prompt_logprobs
from services.tokenizer.text_model import TextModel

log = structlog.get_logger(__name__)

# Above this size, encoding takes longer than a thread's hand-over costs.
_LARGE_PROMPT = 8 * 1024

AskForSummary = Callable[[list[int], int, EngineSink], Callable[[], None]]
"""Begins a greedy stream at the engine: prompt ids, most tokens, what takes its events. Returns what cancels it."""

Result = TypeVar("Result")


class PromptEncoding:
    """Encodes one prompt.

    Args:
        request_id: for logs.
        seconds_left: time that its generation has; None: no limit.
        ask_for_summary: begins the stream that writes a summary; None where none is written.
        new_stages: of the output filters, for a summary.

    Attributes:
        report: what was left out; None: nothing, or not known yet.
    """

    __slots__ = (
        "_ask_for_summary",
        "_metrics",
        "_model",
        "_new_stages",
        "_over",
        "_prompt",
        "_request_id",
        "_seconds",
        "_seconds_left",
        "_summary",
        "report",
    )

    def __init__(
        self,
        request_id: str,
        model: TextModel,
        prompt: Prompt,
        metrics: TokenizerMetrics,
        seconds_left: Callable[[], float | None],
        ask_for_summary: AskForSummary | None = None,
        new_stages: Callable[[], Sequence[NewStage]] = tuple,
    ) -> None:
        self._request_id = request_id
        self._model = model
        self._prompt = prompt
        self._metrics = metrics
        self._seconds_left = seconds_left
        self._ask_for_summary = ask_for_summary
        self._new_stages = new_stages
        self._summary: SummaryStream | None = None
        self._over = False
        self._seconds = 0.0
        self.report: ContextReport | None = None

    async def token_ids(self, max_tokens: int | None, prompt_logprobs: int | None) -> list[int]:
        """The prompt's ids.

        Args:
            max_tokens: of the answer, as the request says.
            prompt_logprobs: alternatives told of each prompt token; None: nothing is told.

        Raises:
            InvalidRequest: it makes no prompt, or does not fit.
            TimeoutError: the time is over.
            ServiceError: a summary's stream failed.
        """
        prompt, tokenizer, context_length = self._prompt, self._model.tokenizer, self._model.context_length
        if (
            isinstance(prompt, ChatPrompt)
            and context_length is not None
            and prompt.policy.kind is not ContextPolicyKind.ERROR
        ):
            limit = context_length - answer_room(context_length, max_tokens)
            fitted = await Fitting(prompt, tokenizer, limit, context_length, self).fit()
            self.report, token_ids = fitted.report, fitted.token_ids
            self._log_report(len(token_ids))
        else:
            # The ids of megabytes of text are millions, and making that list holds up everything else here.
            self._check_length(prompt.least_tokens(tokenizer), "at least ")
            token_ids = await self.compute(lambda: prompt.token_ids(tokenizer))
        self._metrics.encoded(len(token_ids), self._seconds)
        self._check_length(len(token_ids))
        self._model.check_token_ids(token_ids, "the prompt", "prompt")
        check_prompt_logprobs(len(token_ids), prompt_logprobs)
        return token_ids

    def cancel(self) -> None:
        """End what is under way at the engine, and begin nothing more there."""
        self._over = True
        if self._summary is not None:
            self._summary.cancel()

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Do what takes CPU: at once for a small prompt, else in a thread.

        Raises:
            TimeoutError: the time is over. The thread goes on, but its caller hears of it at once.
        """
        begin = time.monotonic()
        try:
            if self._prompt.size <= _LARGE_PROMPT:
                return work()
            async with asyncio.timeout(self._seconds_left()):
                return await asyncio.to_thread(work)
        finally:
            self._seconds += time.monotonic() - begin

    async def write_summary(self, token_ids: list[int], most_tokens: int) -> Written:
        """Have the model write; see `Surroundings`."""
        ask = self._ask_for_summary
        if self._over or ask is None:
            return NOTHING
        self._model.check_token_ids(token_ids, "the summary's prompt", "prompt")
        stream = self._summary = SummaryStream(self._model.tokenizer, token_ids, self._new_stages())
        try:
            stream.start(lambda sink: ask(token_ids, most_tokens, sink))
            written = await stream.written()
        finally:
            stream.cancel()
        self._metrics.tokens.value += written.usage.completion_tokens
        return written

    def _log_report(self, prompt_tokens: int) -> None:
        if (report := self.report) is None or self._over:
            return
        usage = report.summary_usage
        log.info(
            "conversation cut to fit",
            request_id=self._request_id,
            policy=report.policy.value,
            dropped_messages=report.dropped_messages,
            dropped_tokens=report.dropped_tokens,
            prompt_tokens=prompt_tokens,
            summary_prompt_tokens=0 if usage is None else usage.prompt_tokens,
            summary_completion_tokens=0 if usage is None else usage.completion_tokens,
            unsummarized_messages=report.unsummarized_messages,
        )

    def _check_length(self, prompt_tokens: int, vaguely: str = "") -> None:
        # The engine checks this too, but a message for each choice should not carry such a prompt there.
        context_length = self._model.context_length
        if context_length is not None and prompt_tokens >= context_length:
            raise InvalidRequest(
                f"the prompt has {vaguely}{prompt_tokens} tokens, but the context of {context_length} tokens must"
                " hold it and at least one more; shorten the prompt",
                param="prompt",
                reason="CONTEXT_LENGTH_EXCEEDED",
            )
