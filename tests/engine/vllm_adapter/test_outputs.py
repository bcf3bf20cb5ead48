"""What vLLM gives of a step, as the port's outputs."""

from __future__ import annotations

import numpy as np
import pytest
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.outputs import LogprobsLists

from services.engine.port import Logprobs
from services.engine.vllm_adapter.outputs import Asked, step_of

_IDS = np.array([[4, 7, 8, 9], [5, 7, 8, 9]], dtype=np.int32)
_LOGPROBS = np.array([[-1.5, -0.25, -0.5, -0.75], [-2.5, -1.25, -2.0, -3.0]], dtype=np.float32)
_RANKS = np.array([3, 4], dtype=np.int32)


@pytest.mark.parametrize(
    ("tokens", "asked", "told"),
    [
        (1, 2, Logprobs([-1.5], [3], 2, [7, 8], [-0.25, -0.5])),
        (1, 0, Logprobs([-1.5], [3], 0, [], [])),
        (2, 2, Logprobs([-1.5, -2.5], [3, 4], 2, [7, 8, 7, 8], [-0.25, -0.5, -1.25, -2.0])),
        (2, 0, Logprobs([-1.5, -2.5], [3, 4], 0, [], [])),
    ],
)
def test_each_token_has_the_alternatives_that_its_request_asked_for(tokens: int, asked: int, told: Logprobs) -> None:
    """A step gives all requests as many as any asked for; what is too many is cut off, for one token and for more."""
    given = LogprobsLists(_IDS[:tokens], _LOGPROBS[:tokens], _RANKS[:tokens])
    output = EngineCoreOutput("a", [4, 5][:tokens], new_logprobs=given)
    step = step_of(EngineCoreOutputs(outputs=[output]), {"a": Asked((), asked)})
    assert [one.logprobs for one in step.outputs] == [told]
