"""What the service tells of its models."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import grpc

from services.engine.tokenizer_files import tokenizer_digest
from streamomni.engine.v1 import models_pb2
from tests.engine.engine_service import TOKENIZER, EngineService, engine_service, error_of_reading, generate_request


async def test_watch_models_follows_states_and_load(tmp_path: Path) -> None:
    """The first message comes at once; load and states follow, with limits and the tokenizer's digest."""
    async with engine_service(tmp_path, reload_seconds=(1.5,)) as service:
        watch = service.stub.WatchModels(models_pb2.WatchModelsRequest())
        (first,) = (await watch.read()).models
        assert (first.name, first.state) == ("m", models_pb2.MODEL_STATE_READY)
        assert (first.limits.context_length, first.limits.vocab_size, first.limits.max_logprobs) == (2048, 49152, 20)
        assert (first.limits.max_n, first.limits.max_generations) == (64, 64)
        assert first.tokenizer_sha256 == tokenizer_digest(service.model.tokenizer_files())
        call = service.stub.Generate(generate_request())
        await call.read()
        async with asyncio.timeout(5.0):
            while (await watch.read()).models[0].load.running != 1:
                pass
        service.engine.die()
        async with asyncio.timeout(5.0):
            while True:
                (model,) = (await watch.read()).models
                if model.state == models_pb2.MODEL_STATE_FAILED:
                    break
        assert model.load == models_pb2.ModelLoad()
        assert model.failure == "the scripted engine died"
        async with asyncio.timeout(5.0):
            while (await watch.read()).models[0].state != models_pb2.MODEL_STATE_READY:
                pass
        watch.cancel()


async def test_list_models_shows_what_watch_shows(service: EngineService) -> None:
    """The unary call gives the same list as the first message of the watch."""
    watch = service.stub.WatchModels(models_pb2.WatchModelsRequest())
    listed = await service.stub.ListModels(models_pb2.ListModelsRequest())
    assert list((await watch.read()).models) == list(listed.models)
    watch.cancel()


async def test_get_tokenizer_sends_files_in_pieces(tmp_path: Path) -> None:
    """Files come in order of name in pieces of 1 MiB; the first of each tells size and sha256, which fit the bytes."""
    large = bytes(range(256)) * 4096 * 2 + b"end"
    (tmp_path / "merges.txt").write_bytes(large)
    async with engine_service(tmp_path) as service:
        pieces = [piece async for piece in service.stub.GetTokenizer(models_pb2.GetTokenizerRequest())]
    assert [piece.name for piece in pieces] == ["config.json", *["merges.txt"] * 3, "tokenizer.json"]
    assert all(len(piece.content) <= 1024 * 1024 for piece in pieces)
    for name, content in (("merges.txt", large), ("tokenizer.json", TOKENIZER)):
        own = [piece for piece in pieces if piece.name == name]
        assert b"".join(piece.content for piece in own) == content
        assert (own[0].size_bytes, own[0].sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert not any(piece.size_bytes or piece.sha256 for piece in own[1:])


async def test_unbuilt_calls_say_so(service: EngineService) -> None:
    """LoadModel and UnloadModel are UNIMPLEMENTED with a text, and an unknown tokenizer is NOT_FOUND."""
    for call in (
        service.stub.LoadModel(models_pb2.LoadModelRequest(source="x")),
        service.stub.UnloadModel(models_pb2.UnloadModelRequest(name="m")),
    ):
        code, error = await error_of_reading(call)
        assert code is grpc.StatusCode.UNIMPLEMENTED and "not built yet" in error.message
    code, _ = await error_of_reading(service.stub.GetTokenizer(models_pb2.GetTokenizerRequest(model="x")))
    assert code is grpc.StatusCode.NOT_FOUND
