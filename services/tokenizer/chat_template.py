"""A model's chat templates: messages in, prompt text out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.chassis.errors import InvalidRequest
from services.tokenizer.chat_messages import template_messages
from services.tokenizer.compiled_template import CompiledTemplate
from services.tokenizer.control_tokens import ControlTokens, Disguise, Scope
from services.tokenizer.segment import Segment
from services.tokenizer.special_tokens import json_object, special_token_texts
from services.tokenizer.template_environment import chat_environment
from services.tokenizer.token_table import AddedToken
from services.tokenizer.tokenizer_files import (
    CHAT_TEMPLATE,
    CHAT_TEMPLATE_JSON,
    TOKENIZER_CONFIG,
    TokenizerFiles,
    TokenizerFilesError,
)

# What a caller's template variables may not replace.
_OWN_VARIABLES = frozenset(
    [
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "messages",
        "raise_exception",
        "strftime_now",
        "tokenize",
        "tools",
    ]
)


@dataclass(frozen=True, slots=True)
class _Chat:
    """All that a request gives to the template."""

    messages: Sequence[object]
    tools: object
    variables: Mapping[str, object]


class ChatTemplate:
    """The chat templates of one model, compiled once. Rendering changes nothing, so requests may share it.

    Args:
        sources: Jinja source by name; "default" is used, and "tool_use" where a request brings tools.
        special_tokens: text by name (`bos_token`, …), given to the template as variables.
        added_tokens: the tokenizer's added tokens.
        clock: gives the time for templates that print it; local time by default, as transformers does.

    Attributes:
        source: the Jinja source of all templates.

    Raises:
        TokenizerFilesError: a template does not compile, or there is no "default".
    """

    __slots__ = ("_clock", "_control_tokens", "_special_tokens", "_templates", "source")

    def __init__(
        self,
        sources: Mapping[str, str],
        special_tokens: Mapping[str, str],
        added_tokens: Sequence[AddedToken],
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        if "default" not in sources:
            raise TokenizerFilesError(f"no chat template is named 'default' (found {', '.join(sources) or 'none'})")
        environment = chat_environment()
        self._templates = {name: CompiledTemplate(environment, name, source) for name, source in sources.items()}
        self.source = "\n".join(sources.values())
        self._special_tokens = dict(special_tokens)
        self._control_tokens = ControlTokens(added_tokens, list(sources.values()))
        self._clock = clock

    @classmethod
    def from_files(cls, files: TokenizerFiles, added_tokens: Sequence[AddedToken]) -> ChatTemplate | None:
        """The model's templates; None without any.

        They are in chat_template.jinja, else under `chat_template` in chat_template.json (as processors of several
        media keep theirs), else there in tokenizer_config.json.

        Raises:
            TokenizerFilesError: as the constructor, or for a `chat_template` of unknown form.
        """
        sources = _sources(files)
        return cls(sources, special_token_texts(files), added_tokens) if sources else None

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template_variables: Mapping[str, object] | None = None,
        allow_control_tokens: bool = False,
    ) -> list[Segment]:
        """Render a chat. The segments' texts joined are exactly what the template prints.

        Control tokens that a caller's text only spells lie in segments of user text and are encoded as ordinary text:
        in everything that a request brings, tools and variables too. In assistant messages, marks that the tokenizer
        does not call special (`<think>`) stay tokens, since the model wrote them and they were shown as text. They stay
        in other texts too where the template itself searches for them.

        Args:
            messages: OpenAI's message objects, oldest first (see `template_messages`).
            tools: OpenAI's tool objects, or None.
            add_generation_prompt: ends with what begins the assistant's turn.
            continue_final_message: ends inside the last message, after its text exactly as it was sent. (transformers
                strips that text where the template would; a continuation needs its last newline.)
            template_variables: further variables for the template (`chat_template_kwargs`).
            allow_control_tokens: True recognises control tokens wherever they stand, in one segment.

        Raises:
            InvalidRequest: wrong messages or variables, both ways to end, or the template refused or failed.
        """
        if add_generation_prompt and continue_final_message:
            raise InvalidRequest(
                "continue_final_message and add_generation_prompt exclude each other; set one of them to false",
                param="continue_final_message",
            )
        self._check_variables(template_variables or {})
        template = self._templates["tool_use" if tools and "tool_use" in self._templates else "default"]
        prepared = template_messages(messages, template.form)
        end_mark = _mark_end(prepared) if continue_final_message else None
        chat = _Chat(prepared, None if tools is None else list(tools), dict(template_variables or {}))
        own = {
            **self._special_tokens,
            "add_generation_prompt": add_generation_prompt,
            "strftime_now": self._clock().strftime,
        }

        def text_of(chat: _Chat) -> str:
            given = {"documents": None, **chat.variables, **own, "messages": chat.messages, "tools": chat.tools}
            return _until(end_mark, template.text(given))

        plain = text_of(chat)
        if allow_control_tokens:
            return [Segment(plain, False)]
        try:
            return self._segments(plain, chat, text_of)
        except RecursionError as error:
            raise InvalidRequest(
                "messages, tools or chat_template_kwargs are nested too deeply; flatten them"
            ) from error

    def _segments(self, plain: str, chat: _Chat, text_of: Callable[[_Chat], str]) -> list[Segment]:
        control = self._control_tokens
        if not control.may_be_forged_by([chat.messages, chat.tools, chat.variables]):
            return [Segment(plain, False)]
        disguise = control.disguise_for(plain)
        for scope in Scope:
            try:
                disguised = text_of(_disguised(chat, control, disguise, scope))
            except InvalidRequest:
                continue  # The template itself looks at the exchanged characters; a narrower scope may pass.
            if disguise.removed(disguised) == plain:
                return control.segments(plain, disguised)
        raise InvalidRequest(
            "a text spells a control token of this model where the chat template takes the text apart; remove it",
            param="messages",
            reason="CONTROL_TOKEN",
        )

    def _check_variables(self, variables: Mapping[str, object]) -> None:
        for name in variables:
            if name in _OWN_VARIABLES or name in self._special_tokens:
                raise InvalidRequest(
                    f"chat_template_kwargs may not set {name!r}, which the service sets itself; remove it",
                    param="chat_template_kwargs",
                )


def _disguised(chat: _Chat, control: ControlTokens, disguise: Disguise, scope: Scope) -> _Chat:
    in_answers = Scope.ALL_BUT_MARKS if scope is Scope.EVERYTHING else scope
    messages = [
        control.disguised(message, disguise, in_answers if _is_answer(message) else scope) for message in chat.messages
    ]
    return _Chat(
        messages,
        control.disguised(chat.tools, disguise, scope),
        {name: control.disguised(value, disguise, scope) for name, value in chat.variables.items()},
    )


def _is_answer(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "assistant"


def _sources(files: TokenizerFiles) -> dict[str, str]:
    source = files.text(CHAT_TEMPLATE)
    if source is not None:
        return {"default": source}
    return _configured(files, CHAT_TEMPLATE_JSON) or _configured(files, TOKENIZER_CONFIG)


def _configured(files: TokenizerFiles, file_name: str) -> dict[str, str]:
    configured = json_object(files, file_name).get("chat_template")
    if configured is None:
        return {}
    if isinstance(configured, str):
        return {"default": configured}
    sources = {}
    for entry in configured if isinstance(configured, list) else [None]:
        match entry:
            case {"name": str(name), "template": str(text)}:
                sources[name] = text
            case _:
                raise TokenizerFilesError(f"{file_name}: chat_template is neither text nor a list of named templates")
    return sources


def _mark_end(messages: list[dict[str, object]]) -> str:
    """Append an unguessable mark to the last message's text, and return it."""
    mark = f"END{secrets.token_hex(16)}"
    match messages[-1]["content"]:
        case str(text) if text:
            messages[-1]["content"] = text + mark
        case [*parts, {"text": str(text)}]:
            messages[-1]["content"] = [*parts, {"type": "text", "text": text + mark}]
        case _:
            raise InvalidRequest(
                "continue_final_message is set, but the last message has no text to continue",
                param="continue_final_message",
            )
    return mark


def _until(end_mark: str | None, text: str) -> str:
    if end_mark is None:
        return text
    end = text.rfind(end_mark)
    if end < 0:
        raise InvalidRequest(
            "continue_final_message is set, but the chat template does not print the last message's text",
            param="continue_final_message",
        )
    return text[:end]
