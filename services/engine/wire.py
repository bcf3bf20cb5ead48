"""Protobuf messages to and from the tier's own types."""

from __future__ import annotations

import uuid

from google.protobuf.message import Message

from services.chassis.errors import InvalidRequest, ServiceError, Unsupported
from services.chassis.status import status_of
from services.engine.generation import Usage
from services.engine.models import ModelState, ModelStatus
from services.engine.port import Finish, FinishReason, Logprobs, Prefilled, Sampling
from services.engine.structured_output import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutput,
)
from services.engine.validation import MAX_CHOICES, GenerationSpec
from streamomni.engine.v1 import engine_pb2, models_pb2, sampling_pb2

_MAX_ID_CHARS = 256
# W3C's has 55; later versions of it may have more.
_MAX_TRACEPARENT_CHARS = 512

_FINISH_REASONS = {
    FinishReason.STOP: sampling_pb2.FINISH_REASON_STOP,
    FinishReason.LENGTH: sampling_pb2.FINISH_REASON_LENGTH,
}

_MODEL_STATES = {
    ModelState.LOADING: models_pb2.MODEL_STATE_LOADING,
    ModelState.READY: models_pb2.MODEL_STATE_READY,
    ModelState.DRAINING: models_pb2.MODEL_STATE_DRAINING,
    ModelState.FAILED: models_pb2.MODEL_STATE_FAILED,
}


def generation_spec(request: engine_pb2.GenerateRequest) -> GenerationSpec:
    """Read a request; its values are checked against the model later.

    Raises:
        InvalidRequest: a field is malformed.
        Unsupported: it asks for what is not built.
    """
    if request.HasField("lora_name"):
        raise Unsupported("LoRA adapters are not built yet; leave lora_name unset", param="lora_name")
    for name, most in (("cache_salt", _MAX_ID_CHARS), ("traceparent", _MAX_TRACEPARENT_CHARS)):
        if len(getattr(request, name)) > most:
            raise InvalidRequest(f"{name} is longer than {most} characters; shorten it", param=name)
    return GenerationSpec(
        request_id=request_id_of(request),
        prompt_token_ids=list(request.prompt_token_ids),
        sampling=_sampling(request.sampling_params),
        n=request.n if request.HasField("n") else 1,
        priority=request.priority,
        cache_salt=_optional(request, "cache_salt"),
        deadline_seconds=_deadline_seconds(request),
        traceparent=_optional(request, "traceparent"),
    )


def request_id_of(request: engine_pb2.GenerateRequest) -> str:
    """The caller's id or, if it gave none, a new one.

    Raises:
        InvalidRequest: the id is longer than logs should carry.
    """
    if len(request.request_id) > _MAX_ID_CHARS:
        raise InvalidRequest(f"request_id is longer than {_MAX_ID_CHARS} characters; shorten it", param="request_id")
    return request.request_id or f"req-{uuid.uuid4().hex}"


def started(prompt_tokens: int, prefilled: Prefilled, model: str) -> engine_pb2.Started:
    """The event that a prompt is computed."""
    event = engine_pb2.Started(prompt_tokens=prompt_tokens, cached_tokens=prefilled.cached_tokens, model=model)
    if prefilled.prompt_logprobs is not None:
        fill_logprobs(event.prompt_logprobs, prefilled.prompt_logprobs)
    return event


def delta(index: int, token_ids: list[int], logprobs: Logprobs | None) -> engine_pb2.Delta:
    """The event that a choice got tokens."""
    event = engine_pb2.Delta(index=index, token_ids=token_ids)
    if logprobs is not None:
        fill_logprobs(event.logprobs, logprobs)
    return event


def finished(index: int, finish: Finish, usage: Usage) -> engine_pb2.Finished:
    """The event that a choice ended."""
    return engine_pb2.Finished(
        index=index,
        reason=_FINISH_REASONS[finish.reason],
        stop_token_id=finish.stop_token_id,
        usage=sampling_pb2.Usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
        ),
    )


def failed(stream_id: int, error: ServiceError) -> engine_pb2.StreamEvent:
    """The link's event that a generation failed."""
    return engine_pb2.StreamEvent(stream_id=stream_id, failed=status_of(error))


def fill_logprobs(message: sampling_pb2.Logprobs, logprobs: Logprobs) -> None:
    """Put log probabilities into an empty message, in columns; protobuf would copy one that is given whole."""
    message.logprobs.extend(logprobs.logprobs)
    message.ranks.extend(logprobs.ranks)
    message.top_count = logprobs.top_count
    message.top_token_ids.extend(logprobs.top_token_ids)
    message.top_logprobs.extend(logprobs.top_logprobs)


def model_message(status: ModelStatus) -> models_pb2.Model:
    """What callers may know of a model."""
    message = models_pb2.Model(
        name=status.name,
        state=_MODEL_STATES[status.state],
        created_unix_s=status.created_unix_seconds,
        load=models_pb2.ModelLoad(
            running=status.load.running,
            waiting=status.load.waiting,
            kv_cache_usage=status.load.kv_cache_usage,
        ),
        failure=status.failure,
        tokenizer_sha256=status.tokenizer_digest,
    )
    if status.limits is not None:
        message.limits.context_length = status.limits.context_length
        message.limits.vocab_size = status.limits.vocab_size
        message.limits.max_logprobs = status.limits.max_logprobs
        message.limits.max_n = min(MAX_CHOICES, status.max_generations)
        message.limits.max_generations = status.max_generations
    return message


def _sampling(params: sampling_pb2.SamplingParams) -> Sampling:
    return Sampling(
        temperature=_optional(params, "temperature"),
        top_p=_optional(params, "top_p"),
        top_k=_optional(params, "top_k"),
        min_p=_optional(params, "min_p"),
        presence_penalty=_optional(params, "presence_penalty"),
        frequency_penalty=_optional(params, "frequency_penalty"),
        repetition_penalty=_optional(params, "repetition_penalty"),
        seed=_optional(params, "seed"),
        max_tokens=_optional(params, "max_tokens"),
        min_tokens=params.min_tokens,
        ignore_eos=params.ignore_eos,
        stop_token_ids=tuple(params.stop_token_ids),
        logit_bias=dict(params.logit_bias),
        allowed_token_ids=tuple(params.allowed_token_ids),
        logprobs=_optional(params, "logprobs"),
        prompt_logprobs=_optional(params, "prompt_logprobs"),
        structured_output=_structured_output(params.structured_output)
        if params.HasField("structured_output")
        else None,
    )


def _structured_output(message: sampling_pb2.StructuredOutput) -> StructuredOutput:
    kind = message.WhichOneof("constraint")
    if kind == "json_schema_json":
        return JsonSchema(message.json_schema_json)
    if kind == "json_object":
        return JsonObject()
    if kind == "regex":
        return Regex(message.regex)
    if kind == "grammar":
        return Grammar(message.grammar)
    if kind == "choice":
        return Choice(tuple(message.choice.values))
    if kind == "structural_tag_json":
        return StructuralTag(message.structural_tag_json)
    raise InvalidRequest("structured_output holds no constraint; set one, or leave it unset", param="structured_output")


def _deadline_seconds(request: engine_pb2.GenerateRequest) -> float | None:
    return request.deadline_ms / 1000 if request.HasField("deadline_ms") else None


def _optional(message: Message, name: str):  # type: ignore[no-untyped-def]  # the field's own type
    return getattr(message, name) if message.HasField(name) else None
