"""The part of the contract that says what an abort does, in each phase of a request."""

from __future__ import annotations

import asyncio

from tests.contracts.contract_requests import ENDLESS, GREEDY, PLACES, changed, prompt
from tests.contracts.live_engine import LiveEngine, Record


class AbortContract:
    async def test_abort_right_after_add(self, live: LiveEngine) -> None:
        """A request that is aborted before the engine saw it ends within 1 s and leaves nothing behind."""
        record = live.start(prompt(10), ENDLESS)
        live.engine.abort([record.request_id])
        # Nothing was reported yet, so only time can tell.
        await asyncio.sleep(1.0)
        await self._assert_gone(live, [record])

    async def test_abort_in_decode(self, live: LiveEngine) -> None:
        """Requests that are aborted while they give tokens end within 1 s and free their memory."""
        records = [live.start(prompt(number), ENDLESS) for number in range(8)]
        for record in records:
            await live.begin_of(record)
        assert live.load.running == 8 and live.load.kv_cache_usage > 0
        live.engine.abort([record.request_id for record in records])
        await self._assert_gone(live, records)

    async def test_abort_in_prefill(self, live: LiveEngine) -> None:
        """Long prompts that are aborted before their first output end within 1 s."""
        records = [live.start(prompt(number, 1500), ENDLESS) for number in range(40, 44)]
        await asyncio.sleep(0.01)
        live.engine.abort([record.request_id for record in records])
        await asyncio.sleep(1.0)
        await self._assert_gone(live, records)

    async def test_abort_while_queued(self, live: LiveEngine) -> None:
        """Requests beyond the engine's places wait, and can be aborted there without harm to those that run."""
        running = [live.start(prompt(number), ENDLESS) for number in range(PLACES)]
        for record in running:
            await live.begin_of(record)
        queued = [live.start(prompt(number), ENDLESS) for number in range(PLACES, PLACES + 6)]
        assert await live.until(lambda: live.load.waiting == 6, 5.0)
        assert live.load.running == PLACES
        live.engine.abort([record.request_id for record in queued])
        assert await live.until(lambda: live.load.waiting == 0, 1.0)
        assert [record.outputs for record in queued] == [[]] * 6
        before = len(running[0].token_ids)
        assert await live.until(lambda: len(running[0].token_ids) > before, 5.0)
        live.engine.abort([record.request_id for record in running])
        await self._assert_gone(live, running)

    async def test_abort_of_unknown_and_ended_requests(self, live: LiveEngine) -> None:
        """Aborting what never was, what has ended or what is aborted already does no harm."""
        ended = await live.generate(prompt(11), GREEDY)
        other = live.start(prompt(12), GREEDY)
        live.engine.abort(["never-was", ended.request_id])
        live.engine.abort(["never-was"])
        assert len((await live.end_of(other)).token_ids) == 12
        assert await live.until(live.idle, 1.0)

    async def _assert_gone(self, live: LiveEngine, records: list[Record]) -> None:
        """Within 1 s the engine is idle, and no output follows."""
        assert await live.until(live.idle, 1.0)
        counts = [len(record.outputs) for record in records]
        await live.generate(prompt(99), changed(GREEDY, max_tokens=3))
        assert [len(record.outputs) for record in records] == counts
        assert not any(record.ended.is_set() for record in records)
