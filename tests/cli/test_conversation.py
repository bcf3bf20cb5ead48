"""What is said and kept in a conversation, against a real HTTP service."""

from __future__ import annotations

import os
import signal

import pytest

from services.cli.conversation import Conversation
from services.cli.service_client import ChatOptions, ServiceClient
from tests.cli.scripted_http import REQUEST_ID, ChatServer, chat_server

PARIS = "It is Paris\x1b[2J."


def conversation(server: ChatServer, shown: list[str], system: str | None = None) -> Conversation:
    """A conversation with the service that keeps what it shows."""
    return Conversation(ServiceClient(server.url), ChatOptions("tiny"), system, shown.append)


def test_all_that_was_said_is_sent_again() -> None:
    """Each request carries the system prompt and all turns before it."""
    with chat_server("tiny") as server:
        talk = conversation(server, [], "Be brief.")
        talk.ask("one")
        talk.ask("two")
        assert [(message["role"], message["content"]) for message in server.chats[-1]["messages"]] == [
            ("system", "Be brief."),
            ("user", "one"),
            ("assistant", PARIS),
            ("user", "two"),
        ]


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Text is shown piece by piece, without the escape sequences that a model may write; history keeps them."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        talk = conversation(server, shown)
        talk.ask("hello")
        assert shown == ["It is ", "Paris\N{REPLACEMENT CHARACTER}[2J.", "\n"]
        assert talk.messages[-1] == {"role": "assistant", "content": PARIS}


def test_interrupted_answer_stays_and_is_marked() -> None:
    """Ctrl-C closes the connection; what has come is kept as the answer, and the next question follows it."""
    with chat_server("tiny") as server:
        shown: list[str] = []

        def interrupt(text: str) -> None:
            shown.append(text)
            if len(shown) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        talk = Conversation(ServiceClient(server.url), ChatOptions("tiny"), None, interrupt)
        talk.ask("forever")
        assert server.left.wait(5)
        assert shown[-1] == "\n[stopped]\n"
        answer = talk.messages[-1]["content"]
        assert answer == "".join(shown[:-1])
        talk.ask("hello")
        assert [message["content"] for message in server.chats[-1]["messages"]] == ["forever", answer, "hello"]


@pytest.mark.parametrize(
    ("text", "mark", "kept"),
    [
        ("refuse", f"[error: too long (request {REQUEST_ID})]\n", []),
        ("fail", f"\n[error: the engine died (request {REQUEST_ID})]\n", ["fail", "half"]),
    ],
)
def test_failure_is_shown_and_the_conversation_goes_on(text: str, mark: str, kept: list[str]) -> None:
    """An error is one line; a question without any answer is taken back, a partial answer is kept."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        talk = conversation(server, shown)
        talk.ask(text)
        assert shown[-1] == mark
        assert [message["content"] for message in talk.messages] == kept
        talk.ask("hello")
        assert talk.messages[-1]["content"] == PARIS


def test_token_limit_is_marked() -> None:
    """An answer that ended at its limit does not look like a whole one."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        Conversation(ServiceClient(server.url), ChatOptions("tiny", max_tokens=3), None, shown.append).ask("hello")
        assert shown[-1] == "\n[cut off: the answer reached its token limit]\n"
