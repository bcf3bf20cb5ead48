"""A preset put to a request's body, before anything else reads it: what comes out is an ordinary body."""

from __future__ import annotations

from typing import Any

from services.chassis.errors import InvalidRequest
from services.frontend.fields import Fields
from services.frontend.messages import Message, parse_messages
from services.frontend.presets.library import Presets
from services.frontend.presets.preset import INPUT, Preset, filled
from services.frontend.presets.preset_file import MAX_VALUE_CHARS

Body = dict[str, Any]

_MAX_SHOWN_NAME_CHARS = 64


def with_preset(body: Body, presets: Presets) -> Body:
    """Return the body with the preset that it names put to it, or the body itself if it names none.

    `messages` are the whole conversation. Its last user message becomes the preset's `user`, a conversation without a
    system message gets the preset's, and the preset's parameters count where the body has none. Other fields are left
    for the ordinary reading of the body.

    Raises:
        InvalidRequest: there is no such preset, a variable is missing, unknown or wrong, or the messages are wrong or
            not what the preset can be put to.
        Unsupported: a message has a part that is not text.
    """
    fields = Fields(body)
    name, given = fields.string("preset"), fields.nested("preset_variables")
    if name is None:
        if given is not None:
            raise InvalidRequest("preset_variables needs preset; set it, or leave both out", param="preset_variables")
        return body
    preset = presets.asked(name)
    values = _values(preset, given or Fields({}, "preset_variables."))
    changed = {key: value for key, value in body.items() if key not in ("preset", "preset_variables")}
    for parameter, default in preset.parameters.items():
        # The other spelling counts as given too.
        asked = ("max_tokens", "max_completion_tokens") if parameter == "max_tokens" else (parameter,)
        if all(changed.get(key) is None for key in asked):
            changed[parameter] = default
    _put_to_messages(changed, preset, values)
    return changed


def _values(preset: Preset, given: Fields) -> dict[str, str]:
    names = [variable.name for variable in preset.variables]
    for name in given:
        if name not in names:
            known = f"preset {preset.name} has {', '.join(names) or 'no variables'}"
            if name.isidentifier() and len(name) <= _MAX_SHOWN_NAME_CHARS:
                raise InvalidRequest(f"{given.path(name)} is unknown; {known}", param=given.path(name))
            raise InvalidRequest(f"preset_variables holds an unknown name; {known}", param="preset_variables")
    values: dict[str, str] = {}
    for variable in preset.variables:
        value, path = given.string(variable.name, MAX_VALUE_CHARS), given.path(variable.name)
        if value is None:
            value = variable.default
        if value is None:
            raise InvalidRequest(f"preset {preset.name} needs {path}: {variable.description}", param=path)
        if variable.choices and value not in variable.choices:
            raise InvalidRequest(f"{path} must be one of {', '.join(variable.choices)}", param=path)
        values[variable.name] = value
    return values


def _put_to_messages(body: Body, preset: Preset, values: dict[str, str]) -> None:
    # Read before they are changed, so that errors name messages by the places that they were sent at.
    read = parse_messages(Fields(body))
    messages = list(body["messages"])
    last_user = next((at for at in range(len(read) - 1, -1, -1) if read[at].role == "user"), None)
    if last_user is None:
        raise InvalidRequest(f"preset {preset.name} is for a user message, but there is none", param="messages")
    values = {**values, INPUT: _text(read[last_user])}
    messages[last_user] = {**messages[last_user], "content": filled(preset.user, values)}
    if preset.opening is not None:
        opening, goes_on = filled(preset.opening, values), body.get("continue_final_message")
        if goes_on is False:
            raise InvalidRequest(
                f"preset {preset.name} begins the answer itself; set continue_final_message, or leave it out",
                param="continue_final_message",
            )
        if last_user == len(read) - 1:
            messages.append({"role": "assistant", "content": opening})
        elif read[-1].role == "assistant" and goes_on is True:
            # An answer to the same preset goes on, and its opening was not a part of it.
            messages[-1] = {**messages[-1], "content": opening + _text(read[-1])}
        else:
            raise InvalidRequest(
                f"preset {preset.name} begins the answer itself; end messages with the user's, or with the"
                " assistant's and continue_final_message: true",
                param="messages",
            )
        if goes_on is None:
            body["continue_final_message"] = True
    if preset.system is not None and not any(message.role in ("system", "developer") for message in read):
        messages.insert(0, {"role": "system", "content": filled(preset.system, values)})
    body["messages"] = messages


def _text(message: Message) -> str:
    """Return a message's text; parts are joined as templates that take strings get them."""
    content = message.content
    return "\n".join(content) if isinstance(content, tuple) else content or ""
