"""Asks a classifier in threads, each time within bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from services.tokenizer.classifiers.port import Classifier, Verdict

log = structlog.get_logger(__name__)

Tell = Callable[[Verdict | None], None]


class Judging:
    """Asks one classifier.

    Args:
        classifier: is asked.
        seconds: in which each verdict must come.
    """

    def __init__(self, classifier: Classifier, seconds: float) -> None:
        self._classifier = classifier
        self._seconds = seconds
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Take questions until cancelled; what is under way then ends unanswered."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.Event().wait()

    def ask(self, text: str, request_id: str, tell: Tell, fail: Callable[[], None]) -> None:
        """Have a text judged: `tell` gets the verdict, or `fail` is called where none came or came in time."""
        if self._group is None:
            fail()
        else:
            self._group.create_task(self._judge(text, request_id, tell, fail))

    async def _judge(self, text: str, request_id: str, tell: Tell, fail: Callable[[], None]) -> None:
        try:
            # A thread that is late goes on, but nobody waits for it.
            async with asyncio.timeout(self._seconds):
                verdict = await asyncio.to_thread(self._classifier.judge, text)
            tell(verdict)
        except TimeoutError:
            log.error("classifier was late", request_id=request_id, seconds=self._seconds)
            fail()
        except Exception as error:  # noqa: BLE001 - it may raise what it wants, and its text may hold what was judged
            log.error("classifier failed", request_id=request_id, kind=type(error).__name__)
            fail()
