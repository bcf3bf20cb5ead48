"""What came of one generation of a text service, checked against the rules of `text.proto`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from services.chassis.errors import ServiceError
from services.chassis.status import DOMAIN, error_of
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2

# The link's and the call's messages have these fields in common.
Detail = text_pb2.EntryDetail | text_pb2.Delta


@dataclass(slots=True)
class Record:
    """What came of one generation. What the proto rules out fails an assertion as it comes."""

    n: int
    started: text_pb2.Started | None = None
    entries: list[tuple[int, list[int], str]] = field(default_factory=list)
    details: list[tuple[int, Detail]] = field(default_factory=list)
    finishes: dict[int, text_pb2.Finished] = field(default_factory=dict)
    error: ServiceError | None = None

    @property
    def over(self) -> bool:
        """Whether nothing may come any more."""
        return self.error is not None or 0 < self.n == len(self.finishes)

    def text(self, index: int = 0) -> str:
        """The text of a choice so far."""
        return "".join(text for own, _, text in self.entries if own == index)

    def token_ids(self, index: int = 0) -> list[int]:
        """The ids of a choice so far."""
        return [token_id for own, token_ids, _ in self.entries if own == index for token_id in token_ids]

    def reasoning(self, index: int = 0) -> str:
        """The reasoning of a choice so far."""
        return "".join(detail.reasoning for own, detail in self.details if own == index)

    def calls(self, index: int = 0) -> list[tuple[str, str, str]]:
        """Ids, names and arguments of a choice's calls so far."""
        pieces = [piece for own, detail in self.details if own == index for piece in detail.tool_calls]
        calls: list[tuple[str, str, str]] = []
        for piece in pieces:
            if piece.HasField("id"):
                calls.append((piece.id, piece.name, ""))
            call_id, name, arguments = calls[piece.index]
            calls[piece.index] = (call_id, name, arguments + piece.arguments_json)
        return calls

    def logprobs(self, index: int = 0) -> list[text_pb2.TextLogprobs]:
        """What was told of a choice's tokens so far, delta by delta."""
        return [detail.logprobs for own, detail in self.details if own == index and detail.HasField("logprobs")]

    def take_started(self, started: text_pb2.Started) -> None:
        """Take the first event."""
        assert self.started is None, "started twice"
        assert not self.over and not self.entries, "started is not the first event"
        assert 0 <= started.cached_tokens <= started.prompt_tokens and started.model
        self.started = started

    def take_entry(self, index: int, token_ids: Iterable[int], text: str) -> None:
        """Take the next piece of a choice."""
        self._assert_open(index)
        self.entries.append((index, list(token_ids), text))

    def take_detail(self, detail: Detail) -> None:
        """Take what the last entry has beside tokens and text."""
        index, token_ids, _ = self.entries[-1]
        for piece in detail.tool_calls:
            begins = piece.index == len(self.calls(index))
            assert begins or piece.index == len(self.calls(index)) - 1, "a piece of a call that is not the last"
            assert begins == piece.HasField("id") == piece.HasField("name"), "id and name come once, at the beginning"
            assert not begins or (piece.id and piece.name)
            self.details.append((index, text_pb2.EntryDetail(tool_calls=[piece])))
        if detail.HasField("logprobs"):
            _assert_aligned(detail.logprobs, len(token_ids))
        rest = text_pb2.EntryDetail(reasoning=detail.reasoning)
        if detail.HasField("logprobs"):
            rest.logprobs.CopyFrom(detail.logprobs)
        self.details.append((index, rest))

    def take_finished(self, finished: text_pb2.Finished) -> None:
        """Take the end of a choice."""
        self._assert_open(finished.index)
        assert self.started is not None
        assert finished.reason != sampling_pb2.FINISH_REASON_UNSPECIFIED
        if finished.WhichOneof("matched_stop"):
            assert finished.reason == sampling_pb2.FINISH_REASON_STOP
        usage = finished.usage
        assert usage.completion_tokens == len(self.token_ids(finished.index)), "usage is not that of the deltas"
        assert usage.prompt_tokens == self.started.prompt_tokens
        assert usage.cached_tokens <= usage.prompt_tokens
        self.finishes[finished.index] = finished

    def take_failed(self, status: Status) -> None:
        """Take the error that ends the whole."""
        assert not self.over, "failed after the end"
        (info,) = (detail for detail in status.details if detail.Is(ErrorInfo.DESCRIPTOR))
        unpacked = ErrorInfo()
        info.Unpack(unpacked)
        assert unpacked.domain == DOMAIN and unpacked.reason
        assert status.message and "\n" not in status.message
        self.error = error_of(status)

    def _assert_open(self, index: int) -> None:
        assert self.started is not None, "an event before started"
        assert self.error is None, "an event after the failure"
        assert index < self.n and index not in self.finishes, f"an event of choice {index}, which is not open"


def _assert_aligned(logprobs: text_pb2.TextLogprobs, tokens: int) -> None:
    numbers, tops = logprobs.logprobs, tokens * logprobs.logprobs.top_count
    assert len(numbers.logprobs) == len(numbers.ranks) == tokens
    assert len(logprobs.token_bytes) == len(logprobs.text_offsets) == tokens
    assert len(numbers.top_token_ids) == len(numbers.top_logprobs) == len(logprobs.top_token_bytes) == tops
