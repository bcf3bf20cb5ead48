"""Following the engine's models and fetching their tokenizers, from the real engine tier."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import structlog

from services.chassis.changes import Changes
from services.chassis.channel import open_channel
from services.chassis.errors import Loading, NotFound, Unavailable
from services.engine.models import Models
from services.engine.servicer import Context, EngineServicer
from services.tokenizer.models_client import ModelsClient
from streamomni.engine.v1 import models_pb2
from tests.tokenizer.engine_fixtures import MODEL, EngineTier, asking, endless, running_engine, running_text, until

READY, LOADING, FAILED = (
    models_pb2.MODEL_STATE_READY,
    models_pb2.MODEL_STATE_LOADING,
    models_pb2.MODEL_STATE_FAILED,
)
Piece = models_pb2.GetTokenizerResponse


class Counting(EngineServicer):
    """The engine's servicer, which counts the fetches and lets a test change what goes out."""

    fetches = 0

    def __init__(self, models: Models, change: Callable[[Piece], Sequence[Piece]] = lambda piece: [piece]) -> None:
        super().__init__(models)
        self._change = change

    async def GetTokenizer(
        self, request: models_pb2.GetTokenizerRequest, context: Context
    ) -> AsyncGenerator[Piece, None]:
        """The files, as `change` makes them."""
        self.fetches += 1
        async with aclosing(super().GetTokenizer(request, context)) as pieces:
            async for piece in pieces:
                for changed in self._change(piece):
                    yield changed


@asynccontextmanager
async def following(port: int) -> AsyncGenerator[ModelsClient, None]:
    """A client that follows the engine at this port."""
    address = f"127.0.0.1:{port}"
    async with open_channel(address) as channel:
        client = ModelsClient(address, channel, Changes())
        running = asyncio.create_task(client.run())
        try:
            yield client
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def counted_engine(
    directory: Path, change: Callable[[Piece], Sequence[Piece]] = lambda piece: [piece], port: int = 0
) -> AsyncGenerator[tuple[EngineTier, list[Counting]], None]:
    """An engine and its servicer, in a list since the engine makes it."""
    made: list[Counting] = []

    def servicer(models: Models) -> Counting:
        made.append(Counting(models, change))
        return made[-1]

    async with running_engine(directory, port=port, servicer=servicer) as engine:
        yield engine, made


def state_of(client: ModelsClient) -> int | None:
    """The state of the only model, None without one."""
    return next((message.state for message in client.messages()), None)


async def test_a_model_is_found_by_its_name_or_alone(smollm2: Path) -> None:
    """With its tokenizer, fetched over gRPC, and the engine's limit; under any other name there is none."""
    async with running_engine(smollm2) as engine, following(engine.port) as client:
        await until(lambda: client.ready)
        model = client.find(MODEL)
        assert client.find("").tokenizer is model.tokenizer
        assert (model.name, model.context_length) == (MODEL, 2048)
        assert model.tokenizer.decode(model.tokenizer.encode("Hello world")) == "Hello world"
        assert model.tokenizer.has_chat_template
        with pytest.raises(NotFound, match="model 'other' does not exist; served are scripted") as caught:
            client.find("other")
        assert (caught.value.param, caught.value.reason) == ("model", "MODEL_NOT_FOUND")


async def test_without_an_engine_nothing_is_found() -> None:
    """An engine that cannot be reached is unavailable, not a model that does not exist."""
    async with following(1) as client:
        with pytest.raises(Unavailable, match=r"the engine at 127.0.0.1:1 cannot be reached") as caught:
            client.find("any")
        assert type(caught.value) is Unavailable
        assert (client.ready, client.messages()) == (False, [])


async def test_a_loading_model_is_loading(smollm2: Path) -> None:
    """Until the engine is ready the model is listed as loading, and asking for it says to wait."""
    async with running_engine(smollm2, load_seconds=0.3) as engine, following(engine.port) as client:
        await until(lambda: state_of(client) == LOADING)
        with pytest.raises(Loading, match="model scripted is being loaded"):
            client.find("")
        assert not client.ready
        await until(lambda: client.ready)
        assert client.find("").name == MODEL


async def test_a_tokenizer_is_fetched_once(smollm2: Path) -> None:
    """Changes of load, and an engine that comes back with the same files, fetch nothing anew."""
    async with counted_engine(smollm2) as (engine, made), running_text(engine) as tier:
        tokenizer = tier.models.find("").tokenizer
        changes = tier.models.watch()
        async with aclosing(changes), tier.streaming(asking([500], sampling_params=endless())):
            await until(lambda: any(message.load.running for message in tier.models.messages()))
        engine.loader.engine.die()
        await until(lambda: state_of(tier.models) == FAILED)
        # What still can be asked is the engine's to say.
        assert tier.models.find("").tokenizer is tokenizer
        await until(lambda: state_of(tier.models) == READY)
        assert tier.models.find("").tokenizer is tokenizer
        assert [servicer.fetches for servicer in made] == [1]


async def test_an_engine_that_comes_back_is_followed_again(smollm2: Path) -> None:
    """While it is away no model is there; afterwards its tokenizer is still known."""
    async with running_engine(smollm2) as first:
        port = first.port
        serving = following(port)
        client = await serving.__aenter__()
        await until(lambda: client.ready)
        tokenizer = client.find("").tokenizer
    await until(lambda: not client.messages())
    with pytest.raises(Unavailable, match="cannot be reached"):
        client.find("")
    async with counted_engine(smollm2, port=port) as (_, made):
        await until(lambda: client.ready)
        assert client.find("").tokenizer is tokenizer
        assert made[0].fetches == 0
        await serving.__aexit__(None, None, None)


def damaged(piece: Piece) -> list[Piece]:
    """One bit of tokenizer.json is another."""
    if piece.name == "tokenizer.json" and piece.sha256:
        piece.content = bytes([piece.content[0] ^ 1]) + piece.content[1:]
    return [piece]


def halved(piece: Piece) -> list[Piece]:
    """Of tokenizer.json only the first piece arrives."""
    return [piece] if piece.sha256 or piece.name != "tokenizer.json" else []


def without_tokenizer(piece: Piece) -> list[Piece]:
    """There is no tokenizer.json."""
    return [] if piece.name == "tokenizer.json" else [piece]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (damaged, "tokenizer.json arrived damaged"),
        (halved, "tokenizer.json arrived damaged"),
        (without_tokenizer, "tokenizer.json is missing"),
    ],
)
async def test_damaged_files_fail_the_model(
    smollm2: Path, change: Callable[[Piece], Sequence[Piece]], reason: str
) -> None:
    """The model is FAILED with the reason, in lists and for those who ask for it; it is said once and not fetched
    again with each change of load, only on another connection."""
    with structlog.testing.capture_logs() as lines:
        async with counted_engine(smollm2, change) as (engine, made), following(engine.port) as client:
            await until(lambda: state_of(client) == FAILED)
            (message,) = client.messages()
            assert reason in message.failure and "\n" not in message.failure
            assert not client.ready
            with pytest.raises(Unavailable, match=f"model scripted failed: {reason}") as caught:
                client.find("")
            assert caught.value.reason == "MODEL_FAILED"
            async with aclosing(client.watch()) as changes:
                await anext(changes)
                # The engine's own life goes on, and is told.
                engine.loader.engine.die()
                await anext(changes)
            assert state_of(client) == FAILED
            assert made[0].fetches == 1
    assert [line["event"] for line in lines].count("tokenizer unusable") == 1


async def test_a_tokenizer_that_cannot_be_built_fails_the_model(smollm2: Path, tmp_path: Path) -> None:
    """Files that arrive whole but make no tokenizer are named as well."""
    shutil.copy(smollm2 / "config.json", tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')
    async with running_engine(tmp_path) as engine, following(engine.port) as client:
        await until(lambda: state_of(client) == FAILED)
        assert "tokenizer.json cannot be read" in client.messages()[0].failure


async def test_files_without_use_here_are_left_alone(smollm2: Path) -> None:
    """An engine may send files that this version does not know; the model is served."""

    def with_another(piece: Piece) -> list[Piece]:
        extra = Piece(name="new_kind.json", content=b"{}", sha256="", size_bytes=2)
        return [extra, piece] if piece.sha256 and piece.name == "tokenizer.json" else [piece]

    async with counted_engine(smollm2, with_another) as (engine, _), following(engine.port) as client:
        await until(lambda: client.ready)
        assert client.find("").tokenizer.encode("Hi")


async def test_watchers_see_each_change(smollm2: Path) -> None:
    """A watch yields the models at once and again after each change, until it is closed."""
    async with running_engine(smollm2, load_seconds=0.2) as engine, following(engine.port) as client:
        states = []
        async with aclosing(client.watch()) as changes, asyncio.timeout(10):
            async for messages in changes:
                states.append([message.state for message in messages])
                if states[-1] == [READY]:
                    break
        assert states[0] == []
        assert states[-2:] == [[LOADING], [READY]]
