"""Fields that are refused, because ignoring them would give another answer than was asked for.

Fields that nobody knows are ignored, as OpenAI does.
"""

from __future__ import annotations

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import Fields

# They reach into the engine or into other callers' requests.
UNTRUSTED = (
    "cache_salt",
    "chat_template",
    "kv_transfer_params",
    "lora_adapter",
    "lora_name",
    "lora_path",
    "lora_request",
    "priority",
    "prompt_embeds",
)

# Known fields that this version cannot serve, with the values that ask for nothing.
NOT_BUILT: dict[str, tuple[object, ...]] = {
    "audio": (),
    "bad_words": ([],),
    "documents": ([],),
    "function_call": ("none",),
    "functions": ([],),
    "guided_decoding_backend": (),
    "guided_whitespace_pattern": (),
    "length_penalty": (1, 1.0),
    "logits_processors": ([],),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "prediction": (),
    "prompt_logprobs": (),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
    "web_search_options": (),
}

# Known fields that only chats have, with the value that asks for nothing.
CHATS_ONLY: dict[str, object] = {
    "context_policy": "error",
    "continue_message_id": None,
    "parent_message_id": None,
    "preset": None,
    "preset_variables": None,
    "session_id": None,
    "tool_choice": "none",
    "tools": [],
}

# Known fields that only completions have, with the value that asks for nothing.
COMPLETIONS_ONLY: dict[str, object] = {"echo": False, "suffix": None}

# What goes with a session_id; a turn's request has the whole conversation instead.
_SESSIONS_ONLY = ("continue_message_id", "parent_message_id")


def refuse(fields: Fields) -> None:
    """Refuse what is not served, whatever the endpoint.

    Raises:
        InvalidRequest: a field that callers may not set.
        Unsupported: a field that this version cannot serve.
    """
    for name in UNTRUSTED:
        if fields.value(name) is not None:
            raise InvalidRequest(f"{name} is not accepted from callers; leave it out", param=name)
    for name, harmless in NOT_BUILT.items():
        value = fields.value(name)
        if value is not None and not any(type(value) is type(one) and value == one for one in harmless):
            raise Unsupported(f"{name} is not supported by this version; leave it out", param=name)
    best_of = fields.integer("best_of", 1, 128)
    if best_of is not None and best_of != (fields.value("n") or 1):
        raise Unsupported("best_of other than n is not supported by this version; leave it out", param="best_of")


def refuse_in_completion(fields: Fields) -> None:
    """Refuse what is for chats only.

    Raises:
        Unsupported: a field asks for such a thing.
    """
    for name, harmless in CHATS_ONLY.items():
        value = fields.value(name)
        if value is not None and value != harmless:
            raise Unsupported(f"{name} is for /v1/chat/completions only; leave it out", param=name)


def refuse_in_chat(fields: Fields) -> None:
    """Refuse what is for completions only, or for turns of a session.

    Raises:
        InvalidRequest: a field is for a turn of a session.
        Unsupported: a field asks for such a thing.
    """
    for name in _SESSIONS_ONLY:
        if fields.value(name) is not None:
            raise InvalidRequest(f"{name} needs session_id; set it, or leave {name} out", param=name)
    for name, harmless in COMPLETIONS_ONLY.items():
        value = fields.value(name)
        if value is not None and value is not harmless:
            raise Unsupported(f"{name} is for /v1/completions only; leave it out", param=name)
