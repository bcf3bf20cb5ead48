"""The page of a service that keeps no sessions."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend
from tests.frontend.page_driving import in_browser


async def test_the_page_keeps_the_chats(frontend: Frontend, service: ScriptedTextService) -> None:
    """Turns, versions, branches and continuing work all the same: each request has all messages that the model shall
    see. The list says that the chats are gone with the page, and after a reload they are."""

    def ask(page: Page, text: str) -> None:
        page.locator("#prompt").fill(text)
        page.locator("#prompt").press("Enter")
        expect(page.locator(".assistant .text").last).to_contain_text(text)
        expect(page.locator(".assistant .regenerate").last).to_be_enabled()

    def drive(page: Page) -> None:
        expect(page.locator("#sessions-note")).to_contain_text("This service keeps no chats")
        ask(page, "one")
        ask(page, "two")
        page.locator(".regenerate").last.click()
        expect(page.locator(".variant-count")).to_have_text("2/2")
        page.locator(".variant-before").click()
        expect(page.locator(".variant-count")).to_have_text("1/2")
        page.locator(".user").first.hover()
        page.locator(".user .edit").first.click()
        page.get_by_role("textbox", name="Edit message").fill("uno")
        page.keyboard.press("Enter")
        expect(page.locator(".assistant .text")).to_have_text(["uno"])
        expect(page.locator(".user .variant-count")).to_have_text("2/2")
        expect(page.locator(".session.current a")).to_have_text("one")
        page.locator("#new-chat").click()
        page.evaluate("localStorage.setItem('parameters', JSON.stringify({ max_tokens: 2 }))")
        page.reload()
        expect(page.locator(".session")).to_have_count(0)
        page.locator("#prompt").fill("alpha beta gamma")
        page.locator("#prompt").press("Enter")
        page.locator(".continue").click()
        expect(page.locator(".variant-count")).to_have_text("2/2")
        expect(page.locator("#error-dialog")).to_be_hidden()

    await in_browser(frontend, drive)
    said = [[f"{message.role}: {message.text}" for message in request.chat.messages] for request in service.requests]
    second = ["user: one", "assistant: one", "user: two"]
    begun = "assistant: alpha beta"
    assert [[text.strip() for text in messages] for messages in said] == [
        ["user: one"],
        second,
        second,
        ["user: uno"],
        ["user: alpha beta gamma"],
        ["user: alpha beta gamma", begun],
    ]


async def test_reasoning_is_shown_apart(frontend: Frontend, service: ScriptedTextService) -> None:
    """What a model thinks before it answers stands in a part of its own, which can be opened, and is not read out."""

    def drive(page: Page) -> None:
        page.locator("#prompt").fill("<think>\nlet me see\n</think>\n\nfine")
        page.locator("#prompt").press("Enter")
        expect(page.locator(".assistant .text")).to_have_text("fine")
        reasoning = page.locator(".reasoning")
        expect(reasoning).to_contain_text("let me see")
        expect(page.locator(".assistant .regenerate")).to_be_enabled()
        expect(page.locator(".reasoning-text")).to_be_hidden()
        reasoning.locator("summary").click()
        expect(page.locator(".reasoning-text")).to_be_visible()
        expect(page.locator("#announcer")).to_contain_text("fine")
        expect(page.locator("#announcer")).not_to_contain_text("let me see")

    await in_browser(frontend, drive)
