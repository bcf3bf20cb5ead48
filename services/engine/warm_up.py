"""A first generation, so that the first caller does not pay for lazy initialisation."""

from __future__ import annotations

import asyncio
import time

from services.chassis.errors import ServiceError
from services.engine.generation import Generations, Usage
from services.engine.port import EngineDead, Finish, Logprobs, Prefilled, Sampling
from services.engine.validation import GenerationSpec

# One greedy and one sampled run: they take different paths in the sampler.
_TEMPERATURES = (0.0, 1.0)
_TIMEOUT_SECONDS = 300.0


class _Done:
    """A sink that only waits for the end."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def started(self, prompt_tokens: int, prefilled: Prefilled) -> None:
        pass

    def delta(self, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        pass

    def finished(self, index: int, finish: Finish, usage: Usage) -> None:
        # Cancelled already where the waiting was given up in this very moment.
        if not self.ended.done():
            self.ended.set_result(None)

    def failed(self, error: ServiceError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


async def warm_up(generations: Generations, timeout: float = _TIMEOUT_SECONDS) -> float:
    """Generate a few tokens.

    Args:
        timeout: seconds that each generation gets.

    Returns: seconds that it took.

    Raises:
        EngineDead: nothing came in time, or an error did.
    """
    begin = time.monotonic()
    for temperature in _TEMPERATURES:
        sink = _Done()
        sampling = Sampling(temperature=temperature, max_tokens=2, ignore_eos=True)
        try:
            generation = generations.start(GenerationSpec("warm-up", [0], sampling), sink)
            try:
                async with asyncio.timeout(timeout):
                    await sink.ended
            finally:
                generation.cancel()
        except TimeoutError:
            raise EngineDead(f"the model gave no token within {timeout:g} s of its start") from None
        except ServiceError as error:
            raise EngineDead(f"the model's first generation failed: {error.message}") from error
    return time.monotonic() - begin
