"""The prompts of a completion request, from JSON."""

from __future__ import annotations

from typing import Any

from services.chassis.errors import InvalidRequest
from services.frontend.fields import Fields, checked_token_ids

Prompt = str | tuple[int, ...]
"""Text, or token ids."""

MAX_PROMPTS = 128
# Each is a generation of its own behind this tier, and one caller must not take all places there.
MAX_CHOICES = 256


def parse_prompts(fields: Fields, choices: int) -> tuple[Prompt, ...]:
    """Read `prompt`: a string, a list of token ids, or a list of either; at least one.

    Args:
        choices: number of choices a prompt.

    Raises:
        InvalidRequest: it is something else, or too much.
    """
    prompt = fields.value("prompt")
    if isinstance(prompt, str):
        return (prompt,)
    if not isinstance(prompt, list) or not prompt:
        raise InvalidRequest(
            "prompt must be a string, a list of token ids or a list of either, and not an empty list", param="prompt"
        )
    if not isinstance(prompt[0], (str, list)):
        return (checked_token_ids(prompt, "prompt"),)
    if len(prompt) > MAX_PROMPTS:
        raise InvalidRequest(
            f"at most {MAX_PROMPTS} prompts are allowed in one request, but there are {len(prompt)}; send several"
            " requests",
            param="prompt",
        )
    if len(prompt) * choices > MAX_CHOICES:
        raise InvalidRequest(
            f"{len(prompt)} prompts with {choices} choices each are more than the {MAX_CHOICES} choices allowed in one"
            " request; send several requests",
            param="prompt",
        )
    return tuple(_prompt_of_list(member, type(prompt[0])) for member in prompt)


def _prompt_of_list(member: Any, kind: type) -> Prompt:
    if isinstance(member, kind) and isinstance(member, str):
        return member
    if not isinstance(member, kind) or not isinstance(member, list):
        raise InvalidRequest("prompt must hold strings alone or lists of token ids alone", param="prompt")
    if not member:
        raise InvalidRequest("each prompt must hold at least one token id", param="prompt")
    return checked_token_ids(member, "prompt")
