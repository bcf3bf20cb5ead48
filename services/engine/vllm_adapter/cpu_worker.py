"""vLLM's CPU worker, mended so that seeds and chunked prefill go together.

A prompt that is computed in chunks has a token sampled after each chunk; all but
the last are thrown away, and a seeded request's random numbers must be as if
those had never been drawn. vLLM 0.32 winds the generator back by an offset that
only GPU generators have, so that on a CPU one such request kills the engine.
Without chunks a long prompt holds up every other stream, and cannot be cancelled
until it is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker


class SeededModelRunner(CPUModelRunner):
    """Puts back the state of each generator whose token is thrown away."""

    def _sample(self, *arguments: Any, **named: Any) -> Any:
        states = [(generator, generator.get_state()) for generator in self._generators_of_open_prompts().values()]
        output = super()._sample(*arguments, **named)
        for generator, state in states:
            generator.set_state(state)
        return output

    def _bookkeeping_sync(self, *arguments: Any, **named: Any) -> Any:
        # Hidden from vLLM's own winding back.
        hidden = self._generators_of_open_prompts()
        for index in hidden:
            del self.input_batch.generators[index]
        try:
            return super()._bookkeeping_sync(*arguments, **named)
        finally:
            self.input_batch.generators.update(hidden)

    def _generators_of_open_prompts(self) -> dict[int, torch.Generator]:
        generators = self.input_batch.generators
        if not generators:
            return {}
        thrown_away = np.nonzero(self.discard_request_mask.np[: self.input_batch.num_reqs])[0].tolist()
        return {index: generators[index] for index in thrown_away if index in generators}


class SeededCPUWorker(CPUWorker):
    """A CPU worker that runs the model with `SeededModelRunner`. Named by the engine argument `worker_cls`."""

    def init_device(self) -> None:
        """Make the device and the model runner."""
        super().init_device()  # type: ignore[no-untyped-call]  # vLLM gives it no types
        # The worker makes its runner itself, by a name that cannot be given. The subclass adds no state.
        self.model_runner.__class__ = SeededModelRunner
