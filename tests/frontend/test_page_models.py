"""The page's choice of models, as the models change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from playwright.sync_api import Page, expect

from services.chassis.errors import Loading
from streamomni.engine.v1 import models_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, echo, model
from tests.frontend.conftest import Frontend
from tests.frontend.page_driving import in_browser


async def test_the_state_of_the_chosen_model(frontend: Frontend, service: ScriptedTextService) -> None:
    """The picker lists the models that are ready, and follows the chosen one: loading, failed, ready, gone."""
    loop = asyncio.get_running_loop()

    def offer(*models: models_pb2.Model) -> None:
        loop.call_soon_threadsafe(setattr, service, "models", list(models))

    def drive(page: Page) -> None:
        picker, state = page.locator("#model"), page.locator("#model-state")
        expect(picker.locator("option")).to_have_text(["alpha", "beta"])
        expect(state).to_have_text("ready")
        picker.select_option("beta")
        for present, shown in (
            (models_pb2.MODEL_STATE_LOADING, "loading"),
            (models_pb2.MODEL_STATE_FAILED, "failed"),
            (models_pb2.MODEL_STATE_READY, "ready"),
        ):
            offer(model("alpha"), model("beta", present))
            # The page asks every ten seconds while all is well; coming back online it asks at once.
            page.evaluate("dispatchEvent(new Event('online'))")
            expect(state).to_have_text(shown)
            expect(picker).to_have_value("beta")
        offer(model("alpha"))
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(picker).to_have_value("alpha")
        expect(state).to_have_text("ready")
        offer()
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(state).not_to_have_text("ready")

    service.models = [model("alpha"), model("beta")]
    await in_browser(frontend, drive)


async def test_a_message_waits_for_a_model_that_is_loading(frontend: Frontend, service: ScriptedTextService) -> None:
    """A message to a model that is being loaded counts down to the next try, and is answered when it is ready."""

    async def loading(_: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in list[Event]():
            yield event
        raise Loading("the model is being loaded; try again")

    def drive(page: Page) -> None:
        expect(page.locator("#model")).to_have_value("scripted")
        page.locator("#prompt").fill("hello there")
        page.locator("#prompt").press("Enter")
        expect(page.locator(".busy")).to_contain_text("being loaded")
        expect(page.locator(".countdown")).to_contain_text("Trying again in")
        service.script = echo
        page.get_by_role("button", name="Try now").click()
        expect(page.locator(".assistant .text")).to_contain_text("hello there")

    service.script = loading
    await in_browser(frontend, drive)
