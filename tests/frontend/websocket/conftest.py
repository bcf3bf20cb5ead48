"""A scripted text service that is led step by step."""

from __future__ import annotations

import pytest

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.steps import Steps


@pytest.fixture
def steps(service: ScriptedTextService) -> Steps:
    """What the scripted service says."""
    service.script = steps = Steps()
    return steps
