"""Settings: parameters, the system prompt, presets."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.page.conftest import ask, ask_and_wait, keep_screenshot


def body_of_next_turn(page: Page, text: str) -> dict[str, Any]:
    """Send a message and return the request's body."""
    with page.expect_request("**/v1/chat/completions") as request:
        ask_and_wait(page, text)
    body: dict[str, Any] = json.loads(request.value.post_data or "")
    return body


def test_parameters_are_sent_kept_and_reset(page: Page) -> None:
    """A parameter that is set goes with each request and outlasts a reload; reset, it is left to the service again."""
    page.locator("#settings").click()
    page.locator("#parameter-temperature").fill("0.3")
    page.locator("#parameter-seed").fill("7")
    page.locator("#parameter-stop").fill("END\nSTOP")
    page.keyboard.press("Tab")
    keep_screenshot(page, "settings-1280")
    page.keyboard.press("Escape")
    expect(page.locator("#settings-count")).to_have_text("3")
    body = body_of_next_turn(page, "one")
    assert (body["temperature"], body["seed"], body["stop"]) == (0.3, 7, ["END", "STOP"])
    page.reload()
    page.locator("#settings").click()
    expect(page.locator("#parameter-temperature")).to_have_value("0.3")
    page.get_by_role("button", name="Reset Temperature").click()
    expect(page.locator("#parameter-temperature")).to_have_value("")
    page.locator("#reset-parameters").click()
    page.keyboard.press("Escape")
    expect(page.locator("#settings-count")).to_have_text("")
    assert not {"temperature", "seed", "stop"} & set(body_of_next_turn(page, "two"))


def test_a_wrong_number_is_told_and_not_sent(page: Page) -> None:
    """A number out of range is told beside its field, and requests go without it."""
    page.locator("#settings").click()
    for field, wrong, told in (
        ("temperature", "3", "Temperature must be a number from 0 to 2."),
        ("top_k", "1.5", "Top k must be a whole number from -1 to 100000."),
    ):
        page.locator(f"#parameter-{field}").fill(wrong)
        page.keyboard.press("Tab")
        expect(page.locator(".field-error").get_by_text(told)).to_be_visible()
    page.keyboard.press("Escape")
    assert not {"temperature", "top_k"} & set(body_of_next_turn(page, "one"))


def set_system_prompt(page: Page, text: str) -> None:
    """Fill in the system prompt and leave the settings."""
    page.locator("#settings").click()
    page.locator("#system").fill(text)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")


def test_the_system_prompt_reaches_the_model(page: Page) -> None:
    """A system prompt set before the first message begins the prompt; changed later, it holds from the next turn on."""
    told = page.locator(".assistant code").last
    set_system_prompt(page, "Talk like a pirate.")
    ask_and_wait(page, "show the prompt")
    expect(told).to_contain_text("system\nTalk like a pirate.")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        set_system_prompt(page, "Talk like a poet.")
    ask_and_wait(page, "show the prompt")
    expect(told).to_contain_text("system\nTalk like a poet.")


def test_presets_fill_the_prompt(page: Page) -> None:
    """A preset is chosen by its card, asks for its variables before anything is sent, and shapes what the model is
    told; the conversation shows what was typed."""
    page.locator(".preset-card").get_by_text("Translate", exact=True).click()
    expect(page.locator("#preset")).to_have_value("translate")
    expect(page.locator("#prompt")).to_be_focused()
    ask(page, "good morning")
    variable = page.locator("#preset-target_language")
    expect(variable).to_be_focused()
    expect(page.locator(".user")).to_have_count(0)
    expect(page.locator("#prompt")).to_have_value("good morning")
    variable.fill("Deutsch")
    keep_screenshot(page, "preset-1280")
    body = body_of_next_turn(page, "good morning")
    assert (body["preset"], body["preset_variables"]) == ("translate", {"target_language": "Deutsch"})
    expect(page.locator(".user .text")).to_have_text("good morning")
    expect(page.locator(".assistant .text")).to_contain_text("You said: Translate this text into Deutsch")
    page.locator("#preset").select_option("")
    page.locator(".regenerate").click()
    expect(page.locator(".variant-count")).to_have_text("2/2")
    expect(page.locator(".assistant .text")).to_contain_text("You said: Translate this text into Deutsch")
