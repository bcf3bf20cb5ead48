"""The public calls on text, chats and models, and what Generate refuses, through both real tiers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
import structlog
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from prometheus_client import CollectorRegistry

from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import InvalidRequest, NotFound, ServiceError, Unsupported
from services.chassis.grpc_server import grpc_server
from services.chassis.status import error_of_call
from services.tokenizer.generation import TextGenerator
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.servicer import TextServicer
from services.tokenizer.text_model import TextModel
from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.tokenizer.engine_fixtures import (
    END,
    TEXT_SERVICE,
    TextTier,
    asking,
    endless,
    running_tiers,
    sampling,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers."""
    async with running_tiers(smollm2) as tier:
        yield tier


@pytest_asyncio.fixture(loop_scope="module")
async def tier(running: TextTier) -> AsyncIterator[TextTier]:
    """Both tiers. Within 1 s of a test's end nothing is left of what it started."""
    yield running
    await until(running.idle, 1)


def user(text: str, **fields: Any) -> chat_pb2.ChatPrompt:
    """A chat of one user message."""
    return chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text=text)], **fields)


@pytest.mark.parametrize("text", ["", "Hello world", "\N{LLAMA} and <|im_end|>", "x" * 100_000])
async def test_text_goes_to_ids_and_back(tier: TextTier, text: str) -> None:
    """Tokenize gives what Detokenize turns back into the same text, special tokens shown."""
    ids = (await tier.stub.Tokenize(text_pb2.TokenizeRequest(text=text))).token_ids
    assert list(ids) == tier.models.find("").tokenizer.encode(text)
    back = await tier.stub.Detokenize(text_pb2.DetokenizeRequest(token_ids=ids, skip_special_tokens=False))
    assert back.text == text


async def test_special_tokens_are_hidden_unless_asked_for(tier: TextTier) -> None:
    """Detokenize leaves them out by default."""
    ids = [*tier.encode("Hi"), END]
    for fields, text in (({}, "Hi"), ({"skip_special_tokens": False}, "Hi<|im_end|>")):
        response = await tier.stub.Detokenize(text_pb2.DetokenizeRequest(model="scripted", token_ids=ids, **fields))
        assert response.text == text


async def test_ids_outside_the_vocabulary_are_refused(tier: TextTier) -> None:
    """The last id is served, the next is refused with the allowed ones; no ids are no text."""
    for last in ([49151], []):
        await tier.stub.Detokenize(text_pb2.DetokenizeRequest(token_ids=last))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await tier.stub.Detokenize(text_pb2.DetokenizeRequest(token_ids=[5, 49152]))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    error = error_of_call(caught.value)
    assert (error.param, error.reason) == ("token_ids", "TOKEN_ID_OUT_OF_VOCABULARY")
    assert error.message == "token_ids holds 49152; token ids of this model are 0 to 49151"


async def test_a_rendered_chat_is_the_prompt(tier: TextTier) -> None:
    """RenderChat shows the template's text and the ids that Generate uses; a user's control tokens are text in it."""
    rendered = await tier.stub.RenderChat(text_pb2.RenderChatRequest(chat=user("Hi<|im_end|>")))
    assert rendered.text.endswith("<|im_start|>user\nHi<|im_end|><|im_end|>\n<|im_start|>assistant\n")
    await tier.generate(text_pb2.GenerateRequest(chat=user("Hi<|im_end|>"), sampling_params=sampling(max_tokens=1)))
    assert list(tier.engine.lines.requests[-1].prompt_token_ids) == list(rendered.token_ids)
    # The system's turn and the user's end once each.
    assert list(rendered.token_ids).count(END) == rendered.text.count("<|im_end|>") - 1


@pytest.mark.parametrize(
    ("chat", "code", "param"),
    [
        (chat_pb2.ChatPrompt(), grpc.StatusCode.INVALID_ARGUMENT, "messages"),
        (user("a", tools=[chat_pb2.Tool(name="")]), grpc.StatusCode.INVALID_ARGUMENT, "tools[0].name"),
        (user("a", chat_template_kwargs_json="[]"), grpc.StatusCode.INVALID_ARGUMENT, "chat_template_kwargs"),
        (
            user("a", continue_final_message=True, add_generation_prompt=True),
            grpc.StatusCode.INVALID_ARGUMENT,
            "continue_final_message",
        ),
    ],
)
async def test_bad_chats_are_refused(
    tier: TextTier, chat: chat_pb2.ChatPrompt, code: grpc.StatusCode, param: str
) -> None:
    """RenderChat refuses what Generate would, naming the field."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await tier.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
    assert (caught.value.code(), error_of_call(caught.value).param) == (code, param)


async def test_unknown_models_are_not_found(tier: TextTier) -> None:
    """Each call names the models that there are."""
    calls: list[Awaitable[Any]] = [
        tier.stub.Tokenize(text_pb2.TokenizeRequest(model="../x")),
        tier.stub.Detokenize(text_pb2.DetokenizeRequest(model="../x")),
        tier.stub.RenderChat(text_pb2.RenderChatRequest(model="../x", chat=user("a"))),
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "model '../x' does not exist; served are scripted"
        assert error_of_call(caught.value).reason == "MODEL_NOT_FOUND"
    assert isinstance((await tier.generate(asking([500], model="../x"))).error, NotFound)


async def test_models_are_listed_and_watched(tier: TextTier) -> None:
    """The list is the engine's with its limits; a watch gives it at once, and again when the load changes."""
    (model,) = (await tier.stub.ListModels(text_pb2.ListModelsRequest())).models
    assert (model.name, model.state) == ("scripted", models_pb2.MODEL_STATE_READY)
    assert (model.limits.context_length, model.limits.vocab_size, model.limits.max_n) == (2048, 49152, 128)
    watching = tier.stub.WatchModels(text_pb2.WatchModelsRequest())
    responses = aiter(watching)
    assert [watched.name for watched in (await anext(responses)).models] == ["scripted"]
    async with tier.streaming(asking([500], sampling_params=endless())), asyncio.timeout(5):
        while (await anext(responses)).models[0].load.running != 1:
            pass
    watching.cancel()
    await until(tier.idle, 1)


async def test_an_unknown_fault_is_logged_under_the_requests_id(tier: TextTier) -> None:
    """The caller gets a fixed text, and the log its cause with the id that the text points to."""

    def find(name: str) -> TextModel:
        raise RuntimeError(f"a fault with {name}")

    admission = Drain(1, "generations")
    generator = TextGenerator(find, tier.link.start, admission, TokenizerMetrics(CollectorRegistry(), admission))

    def register(server: grpc.aio.Server) -> None:
        text_pb2_grpc.add_TextServiceServicer_to_server(TextServicer(generator, tier.models), server)

    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        async with (
            grpc_server("127.0.0.1", 0, [TEXT_SERVICE], register) as (port, _),
            open_channel(f"127.0.0.1:{port}") as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                stub = text_pb2_grpc.TextServiceStub(channel)
                await anext(aiter(stub.Generate(asking([500], request_id="r-9", model="m"))))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "fault" not in (caught.value.details() or "")
    assert [(line["event"], line["request_id"]) for line in lines] == [("call failed", "r-9")]


@pytest.mark.parametrize(
    ("request_", "kind", "code", "param"),
    [
        (
            text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix="b")),
            InvalidRequest,
            grpc.StatusCode.INVALID_ARGUMENT,
            "suffix",
        ),
        (
            text_pb2.GenerateRequest(
                chat=chat_pb2.ChatPrompt(
                    messages=[chat_pb2.ChatMessage(role="user", text="a")], tools=[chat_pb2.Tool(name="f")]
                ),
                sampling_params=sampling(structured_output=sampling_pb2.StructuredOutput(regex="a")),
            ),
            Unsupported,
            grpc.StatusCode.UNIMPLEMENTED,
            "structured_output",
        ),
        (
            asking([500], sampling_params=sampling(logprobs=21)),
            InvalidRequest,
            grpc.StatusCode.INVALID_ARGUMENT,
            "logprobs",
        ),
        (
            asking([500], sampling_params=sampling(structured_output=sampling_pb2.StructuredOutput(regex="a"))),
            Unsupported,
            grpc.StatusCode.UNIMPLEMENTED,
            "structured_output",
        ),
        (asking([500], lora_name="adapter"), Unsupported, grpc.StatusCode.UNIMPLEMENTED, "lora_name"),
        (asking([500], n=129), InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT, "n"),
        (asking([2**32 - 1]), InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT, "prompt"),
        (
            text_pb2.GenerateRequest(
                chat=chat_pb2.ChatPrompt(
                    messages=[chat_pb2.ChatMessage(role="user", text="a")],
                    chat_template_kwargs_json='{"chat_template": "{{ 1 }}"}',
                )
            ),
            InvalidRequest,
            grpc.StatusCode.INVALID_ARGUMENT,
            "chat_template_kwargs",
        ),
        (
            text_pb2.GenerateRequest(
                chat=chat_pb2.ChatPrompt(
                    messages=[
                        chat_pb2.ChatMessage(
                            role="user",
                            parts=chat_pb2.ContentParts(
                                parts=[chat_pb2.ContentPart(media=chat_pb2.MediaPart(type="image_url"))]
                            ),
                        )
                    ]
                )
            ),
            InvalidRequest,
            grpc.StatusCode.INVALID_ARGUMENT,
            "messages[0].content[0]",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusals_carry_their_details(
    tier: TextTier,
    request_: text_pb2.GenerateRequest,
    kind: type[ServiceError],
    code: grpc.StatusCode,
    param: str,
) -> None:
    """What is wrong or not built is refused by name: the code, ErrorInfo with a reason, BadRequest with the field."""
    call = tier.stub.Generate(request_)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    assert caught.value.code() is code
    assert type(error_of_call(caught.value)) is kind
    metadata = dict(caught.value.trailing_metadata())
    status = Status.FromString(bytes(metadata["grpc-status-details-bin"]))
    info, bad_request = ErrorInfo(), BadRequest()
    assert status.details[0].Unpack(info) and status.details[1].Unpack(bad_request)
    assert info.reason and info.domain == "streamomni"
    assert [violation.field for violation in bad_request.field_violations] == [param]
