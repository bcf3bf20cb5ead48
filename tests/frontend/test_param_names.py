from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Unavailable
from services.frontend.chat_request import parse_chat_request
from services.frontend.completion_request import parse_completion_request
from services.frontend.param_names import name_as_sent

CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
COMPLETION = {"model": "m", "prompt": "x"}


@pytest.mark.parametrize(
    ("param", "fields", "in_chat", "in_completion"),
    [
        ("prompt_token_ids", {}, "messages", "prompt"),
        ("prompt", {}, "messages", "prompt"),
        ("max_tokens", {}, "max_tokens", "max_tokens"),
        ("logit_bias[5]", {}, "logit_bias[5]", "logit_bias[5]"),
        ("structured_output", {"guided_regex": "a"}, "guided_regex", "guided_regex"),
        ("structured_output", {"response_format": {"type": "json_object"}}, "response_format", "response_format"),
        (None, {}, None, None),
    ],
)
def test_a_field_is_named_as_it_was_sent(
    param: str | None, fields: dict[str, Any], in_chat: str | None, in_completion: str | None
) -> None:
    """Names of the tiers behind become the caller's own; all others stay."""
    chat, completion = parse_chat_request({**CHAT, **fields}), parse_completion_request({**COMPLETION, **fields})
    for request, expected in ((chat, in_chat), (completion, in_completion)):
        error = InvalidRequest("wrong", param=param)
        name_as_sent(error, request)
        assert error.param == expected


def test_a_constraint_that_the_caller_did_not_send_is_the_tools() -> None:
    """A required tool's parameters are enforced by structured output; an error of that names the tools."""
    error = InvalidRequest("wrong", param="structured_output")
    name_as_sent(error, parse_chat_request(CHAT))
    assert error.param == "tools"


def test_errors_without_a_field_are_left_alone() -> None:
    """Nothing is put where no field is at fault."""
    error = Unavailable("busy")
    name_as_sent(error, parse_chat_request(CHAT))
    assert error.param is None
