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
    "echo": (False,),
    "function_call": ("none",),
    "functions": ([],),
    "guided_choice": (),
    "guided_decoding_backend": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_whitespace_pattern": (),
    "length_penalty": (1, 1.0),
    "logits_processors": ([],),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "prediction": (),
    "prompt_logprobs": (),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "structured_outputs": (),
    "suffix": (),
    "tool_choice": ("none",),
    "tools": ([],),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
    "web_search_options": (),
}


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
    if best_of is not None and best_of != 1:
        raise Unsupported("best_of above 1 is not supported by this version; leave it out", param="best_of")
    _refuse_response_format(fields)


def _refuse_response_format(fields: Fields) -> None:
    response_format = fields.nested("response_format")
    if response_format is None:
        return
    kind = response_format.string("type")
    if kind not in ("text", "json_object", "json_schema", "structural_tag"):
        raise InvalidRequest(
            "response_format.type must be text, json_object or json_schema", param=response_format.path("type")
        )
    if kind != "text":
        raise Unsupported(
            f"response_format of type {kind} is not supported by this version; use text or leave it out",
            param="response_format",
        )
