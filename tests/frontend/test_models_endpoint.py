"""The list of models, and each of them."""

from __future__ import annotations

from streamomni.engine.v1 import models_pb2
from tests.fakes.scripted_text_service import ScriptedTextService, model
from tests.frontend.conftest import Frontend, running_frontend, until_ready
from tests.frontend.requests import error_of


async def test_list(service: ScriptedTextService, frontend: Frontend) -> None:
    """The list has OpenAI's shape and the models that are ready, in order of name."""
    service.models = [model("b"), model("a"), model("c", models_pb2.MODEL_STATE_LOADING)]
    await _until_known(frontend, "b")
    response = await frontend.client.get("/v1/models")
    assert response.json() == {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": 1_700_000_000,
                "owned_by": "stream-omni",
                "max_model_len": 4096,
            }
            for name in ("a", "b")
        ],
    }


async def test_one(service: ScriptedTextService, frontend: Frontend) -> None:
    """A model is described by its name, one with slashes too; an unknown one gets 404."""
    service.models = [model("org/model")]
    await _until_known(frontend, "org/model")
    for path in ("org/model", "org%2Fmodel"):
        assert (await frontend.client.get(f"/v1/models/{path}")).json()["id"] == "org/model"
    response = await frontend.client.get("/v1/models/other")
    assert response.status_code == 404
    error = error_of(response)
    assert (error["code"], error["param"]) == ("model_not_found", "model")


async def test_one_that_is_not_ready(service: ScriptedTextService, frontend: Frontend) -> None:
    """A model that is being loaded, or failed, gets 503."""
    service.models = [
        model("a"),
        model("loading", models_pb2.MODEL_STATE_LOADING),
        model("failed", models_pb2.MODEL_STATE_FAILED),
    ]
    await _until_known(frontend, "a")
    loading = await frontend.client.get("/v1/models/loading")
    assert (loading.status_code, loading.headers["retry-after"]) == (503, "5")
    assert (await frontend.client.get("/v1/models/failed")).status_code == 503


async def test_nobody_knows() -> None:
    """Without a text service the list is not empty but unknown: 503."""
    async with running_frontend(1) as frontend:
        assert (await frontend.client.get("/v1/models")).status_code == 503


async def test_lists_are_merged() -> None:
    """Of several text services' models each is listed once, ready if it is ready anywhere."""
    one, other = ScriptedTextService(), ScriptedTextService()
    one.models = [model("both", models_pb2.MODEL_STATE_LOADING), model("one")]
    other.models = [model("both")]
    async with one.serve() as port, other.serve() as other_port, running_frontend(port, other_port) as frontend:
        await until_ready(frontend)
        await _until_known(frontend, "both")
        await _until_known(frontend, "one")
        response = await frontend.client.get("/v1/models")
        assert [entry["id"] for entry in response.json()["data"]] == ["both", "one"]


async def _until_known(frontend: Frontend, name: str) -> None:
    for _ in range(200):
        response = await frontend.client.get(f"/v1/models/{name}")
        if response.status_code == 200:
            return
    raise AssertionError(f"{name} did not become known")
