"""Messages of the text service read, and the engine's written, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Loading, ServiceError
from services.chassis.status import error_of
from services.tokenizer import wire
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.fill_in_the_middle import FillInTheMiddlePrompt, end_token_ids
from services.tokenizer.prompt import ChatPrompt, TextPrompt, TokenPrompt
from streamomni.engine.v1 import engine_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.tokenizer.conftest import TokenizerOf

TEXT = text_pb2.TextPrompt(text="Hi")


def asking(**fields: Any) -> text_pb2.GenerateRequest:
    """A request with a text prompt."""
    return text_pb2.GenerateRequest(text=TEXT, **fields)


def user(**fields: Any) -> chat_pb2.ChatPrompt:
    """A chat of one user message."""
    return chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="Hi")], **fields)


def test_unset_fields_mean_the_documented_defaults() -> None:
    """One choice, no stops, special tokens hidden and added, no deadline, and an id of its own for each request."""
    first, second = wire.text_spec(asking()), wire.text_spec(asking())
    assert (first.model, first.n, first.stops, first.include_stop) == ("", 1, None, False)
    assert (first.skip_special_tokens, first.deadline_seconds) == (True, None)
    assert first.prompt == TextPrompt("Hi", add_special_tokens=True)
    assert first.request_id.startswith("req-") and first.request_id != second.request_id


def test_set_fields_are_read() -> None:
    """Also where the value is the type's zero."""
    spec = wire.text_spec(
        text_pb2.GenerateRequest(
            request_id="mine",
            model="m",
            text=text_pb2.TextPrompt(text="", add_special_tokens=False),
            n=3,
            stop=["a", "b"],
            include_stop_str_in_output=True,
            skip_special_tokens=False,
            deadline_ms=0,
        )
    )
    assert (spec.request_id, spec.model, spec.n, spec.include_stop) == ("mine", "m", 3, True)
    assert (spec.skip_special_tokens, spec.deadline_seconds) == (False, 0.0)
    assert spec.prompt == TextPrompt("", add_special_tokens=False)
    assert spec.stops is not None
    assert spec.stops.matcher().feed("xb").match is not None


def test_token_prompts_and_chats_are_read() -> None:
    """The kind of prompt is that of the message."""
    tokens = text_pb2.GenerateRequest(tokens=text_pb2.TokenPrompt(token_ids=[1, 2]))
    assert wire.text_spec(tokens).prompt == TokenPrompt([1, 2])
    assert isinstance(wire.text_spec(text_pb2.GenerateRequest(chat=user())).prompt, ChatPrompt)


@pytest.mark.parametrize(
    ("request_", "kind", "param"),
    [
        (text_pb2.GenerateRequest(), InvalidRequest, "prompt"),
        (asking(request_id="x" * 257), InvalidRequest, "request_id"),
        (asking(stop=["a"] * 5), InvalidRequest, "stop"),
        (asking(stop=[""]), InvalidRequest, "stop"),
        (asking(stop=["x" * 1025]), InvalidRequest, "stop"),
        (text_pb2.GenerateRequest(chat=user(), echo=True), InvalidRequest, "echo"),
        (text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix=""), echo=True), InvalidRequest, "echo"),
        *(
            (
                text_pb2.GenerateRequest(chat=user(tool_choice=chat_pb2.ToolChoice(mode=mode))),
                InvalidRequest,
                "tool_choice",
            )
            for mode in (
                chat_pb2.ToolChoice.MODE_AUTO,
                chat_pb2.ToolChoice.MODE_REQUIRED,
                chat_pb2.ToolChoice.MODE_FUNCTION,
            )
        ),
    ],
)
def test_what_is_wrong_or_not_built_is_refused(
    request_: text_pb2.GenerateRequest, kind: type[ServiceError], param: str
) -> None:
    """The error names the field in one line, and says what to do."""
    with pytest.raises(kind) as caught:
        wire.text_spec(request_)
    assert caught.value.param == param
    assert "\n" not in caught.value.message and len(caught.value.message) < 200


def test_the_engine_gets_all_that_concerns_it() -> None:
    """Sampling parameters go through whole, zeros too; unset fields stay unset, so that refusals are the engine's."""
    params = sampling_pb2.SamplingParams(
        temperature=0.0,
        top_p=0.5,
        top_k=-1,
        min_p=0.0,
        presence_penalty=-2.0,
        frequency_penalty=2.0,
        repetition_penalty=1.1,
        max_tokens=7,
        min_tokens=0,
        ignore_eos=True,
        stop_token_ids=[5, 6],
        logit_bias={3: -100.0},
        allowed_token_ids=[8],
        structured_output=sampling_pb2.StructuredOutput(regex="a+"),
    )
    spec = wire.text_spec(
        asking(
            request_id="mine",
            model="m",
            n=2,
            sampling_params=params,
            priority=0,
            cache_salt="",
            lora_name="adapter",
            traceparent="00-1-2-01",
        )
    )
    expected = engine_pb2.GenerateRequest(
        request_id="mine",
        model="m",
        prompt_token_ids=[4, 5],
        sampling_params=params,
        priority=0,
        cache_salt="",
        lora_name="adapter",
        traceparent="00-1-2-01",
    )
    # Each choice is a stream of its own, so n stays unset.
    assert spec.engine_request([4, 5], 1, None) == expected
    bare = wire.text_spec(asking(request_id="mine")).engine_request([4], 0, None)
    assert bare == engine_pb2.GenerateRequest(
        request_id="mine", prompt_token_ids=[4], sampling_params=sampling_pb2.SamplingParams()
    )


@pytest.mark.parametrize(
    ("seed", "seeds"),
    [
        (5, [5, 6, 7]),
        (-1, [-1, 0, 1]),
        (2**63 - 2, [2**63 - 2, 2**63 - 1, -(2**63)]),
        (-(2**63), [-(2**63), 1 - 2**63, 2 - 2**63]),
    ],
)
def test_choices_have_seeds_of_their_own(seed: int, seeds: list[int]) -> None:
    """Choice i is seeded with the request's seed + i, which wraps at 2^63."""
    spec = wire.text_spec(asking(n=3, sampling_params=sampling_pb2.SamplingParams(seed=seed)))
    assert [spec.engine_request([1], index, None).sampling_params.seed for index in range(3)] == seeds


def test_without_a_seed_no_choice_has_one() -> None:
    """Unseeded choices stay unseeded."""
    spec = wire.text_spec(asking(n=2))
    assert not any(spec.engine_request([1], index, None).sampling_params.HasField("seed") for index in range(2))


@pytest.mark.parametrize(
    ("deadline_ms", "seconds_left", "expected"),
    [(1500, 1.25, 1250), (1500, 0.0, 0), (2**64 - 1, (2**64 - 1) / 1000, 2**64 - 1), (10, 0.0101, 10)],
)
def test_the_engine_gets_the_time_left(deadline_ms: int, seconds_left: float, expected: int) -> None:
    """In milliseconds, never more than the request had, up to the greatest value of the field."""
    spec = wire.text_spec(asking(deadline_ms=deadline_ms))
    assert spec.deadline_seconds == deadline_ms / 1000
    assert spec.engine_request([1], 0, seconds_left).deadline_ms == expected


def test_messages_become_what_templates_read() -> None:
    """OpenAI's message objects: text, parts, null content, names, reasoning under both names, and calls."""
    part = chat_pb2.ContentPart
    media = part(media=chat_pb2.MediaPart(type="image_url", url="http://127.0.0.1:1/"))
    chat = wire.chat_prompt(
        chat_pb2.ChatPrompt(
            messages=[
                chat_pb2.ChatMessage(role="system", text="s", name="n"),
                chat_pb2.ChatMessage(role="user", parts=chat_pb2.ContentParts(parts=[part(text=""), media])),
                chat_pb2.ChatMessage(
                    role="assistant",
                    reasoning="because",
                    tool_calls=[chat_pb2.ToolCall(id="c", name="f", arguments_json='{"a":1}')],
                ),
                chat_pb2.ChatMessage(role="tool", text="", tool_call_id="c"),
            ]
        )
    )
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    assert chat.messages == [
        {"role": "system", "content": "s", "name": "n"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image_url"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning": "because",
            "reasoning_content": "because",
            "tool_calls": [call],
        },
        {"role": "tool", "content": "", "tool_call_id": "c"},
    ]


def test_a_chats_ends_and_variables_are_read() -> None:
    """The assistant's turn is opened unless the last message is continued; further variables are the template's."""
    plain = wire.chat_prompt(user())
    assert (plain.add_generation_prompt, plain.continue_final_message, plain.template_variables) == (True, False, {})
    continued = wire.chat_prompt(user(continue_final_message=True))
    assert (continued.add_generation_prompt, continued.continue_final_message) == (False, True)
    assert wire.chat_prompt(user(add_generation_prompt=False)).add_generation_prompt is False
    # Both set: the template's own refusal tells.
    assert wire.chat_prompt(user(add_generation_prompt=True, continue_final_message=True)).add_generation_prompt
    given = wire.chat_prompt(user(chat_template_kwargs_json='{"enable_thinking": false}', reasoning_effort="low"))
    assert given.template_variables == {"enable_thinking": False, "reasoning_effort": "low"}
    assert wire.chat_prompt(user(tool_choice=chat_pb2.ToolChoice(mode=chat_pb2.ToolChoice.MODE_NONE))).size > 0


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_template_variables_must_be_an_object(text: str) -> None:
    """Anything else is refused, however deep or long."""
    with pytest.raises(InvalidRequest, match="chat_template_kwargs is not a JSON object") as caught:
        wire.chat_prompt(user(chat_template_kwargs_json=text))
    assert caught.value.param == "chat_template_kwargs"


def test_ends_are_translated() -> None:
    """The engine's end with its stop token; ours with a stop string, a stop token or neither."""
    usage = sampling_pb2.Usage(prompt_tokens=3, completion_tokens=4, cached_tokens=2)
    stopped = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_STOP, stop_token_id=0, usage=usage)
    assert wire.finish_of(stopped) == Finish(FinishReason.STOP, 0, Usage(3, 4, 2))
    cut = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_LENGTH, usage=usage)
    assert wire.finish_of(cut) == Finish(FinishReason.LENGTH, None, Usage(3, 4, 2))

    message = wire.finished(2, Finish(FinishReason.STOP, "\n", Usage(3, 4, 2)))
    assert message == text_pb2.Finished(index=2, reason=sampling_pb2.FINISH_REASON_STOP, stop_string="\n", usage=usage)
    assert wire.finished(0, Finish(FinishReason.STOP, 0, Usage(3, 4, 2))).WhichOneof("matched_stop") == "stop_token_id"
    ended = wire.finished(0, Finish(FinishReason.LENGTH, None, Usage(3, 4, 2)))
    assert (ended.reason, ended.WhichOneof("matched_stop")) == (sampling_pb2.FINISH_REASON_LENGTH, None)


def test_failures_keep_their_details() -> None:
    """A failure on the link comes back as the error it was, with reason and time to wait."""
    event = wire.failed(7, Loading("model m is being loaded; try again later"))
    error = error_of(event.failed)
    assert event.stream_id == 7
    # Loading, Overloaded and Draining share a status; their reasons tell them apart.
    assert (error.message, error.reason, error.retry_after) == (
        "model m is being loaded; try again later",
        "LOADING",
        5.0,
    )


def test_a_gap_ends_with_the_models_own_tokens(tokenizer_of: TokenizerOf) -> None:
    """A suffix adds the tokens that end a gap to the caller's own stop tokens; without one nothing is completed."""
    text = text_pb2.TextPrompt(text="a", suffix="b")
    params = sampling_pb2.SamplingParams(stop_token_ids=[7])
    spec = wire.text_spec(text_pb2.GenerateRequest(text=text, sampling_params=params))
    assert isinstance(spec.prompt, FillInTheMiddlePrompt) and spec.complete is not None
    table = tokenizer_of("qwen3").table
    spec.complete(tokenizer_of("qwen3"))
    sent = list(spec.engine_request([1], 0, None).sampling_params.stop_token_ids)
    assert sent == [7, *end_token_ids(table.added_tokens)] and len(sent) > 1
    assert wire.text_spec(asking()).complete is None
