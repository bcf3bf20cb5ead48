"""What is said and kept in a conversation, against a real HTTP service."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from services.cli.chat.conversation import Conversation
from services.cli.chat.display import PlainDisplay
from services.cli.chat.history import History, NothingAsked
from services.cli.chat.local_history import LocalHistory
from services.cli.chat.session_history import SessionHistory
from services.cli.service_client import ChatOptions, Message, ServiceClient
from services.cli.sessions_client import SessionsClient
from tests.cli.scripted_http import REQUEST_ID, ChatServer, chat_server
from tests.cli.scripted_sessions import Sessions

PARIS = "It is Paris\x1b[2J."


def conversation(server: ChatServer, shown: list[str], system: str | None = None) -> Conversation:
    """A conversation with the service that keeps what it shows."""
    client = ServiceClient(server.url)
    return Conversation(client, ChatOptions("tiny"), LocalHistory(system), PlainDisplay(shown.append))


def history_of(client: ServiceClient, with_sessions: bool) -> History:
    """A conversation that the service keeps, or that is kept here."""
    return SessionHistory(SessionsClient(client), {"model": "tiny"}) if with_sessions else LocalHistory(None)


def silent() -> PlainDisplay:
    """A display that nobody looks at."""
    shown: list[str] = []
    return PlainDisplay(shown.append)


def kept(talk: Conversation) -> list[Message]:
    """What was said so far."""
    return list(asyncio.run(talk.history.messages()))


def test_all_that_was_said_is_sent_again() -> None:
    """Without sessions each request carries the system prompt and all turns before it."""
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
        assert kept(talk)[-1] == {"role": "assistant", "content": PARIS}


def test_interrupted_answer_stays_and_is_marked() -> None:
    """Ctrl-C closes the connection; what has come is kept as the answer, and the next question follows it."""
    with chat_server("tiny") as server:
        shown: list[str] = []

        def interrupt(text: str) -> None:
            shown.append(text)
            if len(shown) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        client = ServiceClient(server.url)
        talk = Conversation(client, ChatOptions("tiny"), LocalHistory(None), PlainDisplay(interrupt))
        assert talk.ask("forever").is_stopped
        assert server.left.wait(5)
        assert shown[-2:] == ["\n", "[stopped]\n"]
        answer = kept(talk)[-1]["content"]
        assert answer == "".join(shown[:-2])
        talk.ask("hello")
        assert [message["content"] for message in server.chats[-1]["messages"]] == ["forever", answer, "hello"]


@pytest.mark.parametrize(
    ("text", "mark", "left"),
    [
        ("refuse", f"[error: too long�[2J (request {REQUEST_ID})]\n", []),
        ("fail", f"[error: the engine died (request {REQUEST_ID})]\n", ["fail", "half"]),
    ],
)
def test_failure_is_shown_and_the_conversation_goes_on(text: str, mark: str, left: list[str]) -> None:
    """An error is one line; a question without any answer is taken back, a partial answer is kept."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        talk = conversation(server, shown)
        talk.ask(text)
        assert shown[-1] == mark
        assert [message["content"] for message in kept(talk)] == left
        talk.ask("hello")
        assert kept(talk)[-1]["content"] == PARIS


def test_token_limit_is_marked() -> None:
    """An answer that ended at its limit does not look like a whole one."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        talk = conversation(server, shown)
        talk.options = ChatOptions("tiny", max_tokens=3)
        talk.ask("hello")
        assert shown[-2:] == ["\n", "[cut off: the answer reached its token limit]\n"]


def test_what_was_trimmed_or_filtered_is_told() -> None:
    """After the answer stands a line for history that was dropped, for each filter match and for each format fault."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        conversation(server, shown).ask("trim")
        assert shown == [
            "It █████",
            "\n",
            "[history trimmed: 2 earlier messages (40 tokens) were left out so that the rest fits]\n",
            "[filter names masked 5 characters at 3]\n",
            "[json fault at character 9: an object is not closed]\n",
        ]


@pytest.mark.parametrize("with_sessions", [False, True])
def test_question_is_answered_again_or_changed(with_sessions: bool) -> None:
    """Retrying answers the last question once more, editing asks another in its place; both leave what came before."""
    with chat_server("tiny", sessions=Sessions()) as server:
        client = ServiceClient(server.url)
        talk = Conversation(client, ChatOptions("tiny"), history_of(client, with_sessions), silent())
        with pytest.raises(NothingAsked):
            talk.retry()
        talk.ask("one")
        talk.ask("two")
        talk.retry()
        assert [message["content"] for message in kept(talk)] == ["one", PARIS, "two", PARIS]
        talk.edit("three")
        assert [message["content"] for message in kept(talk)] == ["one", PARIS, "three", PARIS]


@pytest.mark.parametrize("with_sessions", [False, True])
def test_refused_question_can_be_retried_and_changed(with_sessions: bool) -> None:
    """A question that was never answered is the last one all the same, though no history holds it."""
    with chat_server("tiny", sessions=Sessions()) as server:
        client = ServiceClient(server.url)
        talk = Conversation(client, ChatOptions("tiny"), history_of(client, with_sessions), silent())
        talk.ask("one")
        talk.ask("refuse this")
        assert asyncio.run(talk.history.last_question()) == "refuse this"
        assert talk.retry().error == f"too long�[2J (request {REQUEST_ID})"
        assert talk.edit("two").error is None
        assert [message["content"] for message in kept(talk)] == ["one", PARIS, "two", PARIS]


def test_session_is_sent_only_what_is_new() -> None:
    """Where the service keeps sessions, the first turn makes one with the system prompt, and each sends one message."""
    sessions = Sessions()
    with chat_server("tiny", sessions=sessions) as server:
        client = ServiceClient(server.url)
        history = SessionHistory(SessionsClient(client), {"model": "tiny", "system": "Be brief."})
        talk = Conversation(client, ChatOptions("tiny"), history, silent())
        talk.ask("one")
        talk.ask("two")
        assert talk.history.session_id == "sess_1"
        assert sessions.sessions["sess_1"]["system"] == "Be brief."
        assert [chat["messages"] for chat in server.chats] == [
            [{"role": "user", "content": "one"}],
            [{"role": "user", "content": "two"}],
        ]
        assert [chat["session_id"] for chat in server.chats] == ["sess_1", "sess_1"]


def test_service_without_sessions_is_talked_to_all_the_same() -> None:
    """Where the service keeps no sessions that is said once, and the conversation is kept here."""
    with chat_server("tiny") as server:
        shown: list[str] = []
        client = ServiceClient(server.url)
        history = SessionHistory(SessionsClient(client), {"model": "tiny", "system": "Be brief."})
        talk = Conversation(client, ChatOptions("tiny"), history, PlainDisplay(shown.append))
        talk.ask("one")
        talk.ask("two")
        assert len([line for line in shown if "keeps no sessions" in line]) == 1
        contents = [message["content"] for message in server.chats[-1]["messages"]]
        assert contents == ["Be brief.", "one", PARIS, "two"]


def test_session_that_is_busy_with_a_stopped_answer_is_waited_for() -> None:
    """Right after Ctrl-C the service may refuse the next turn for a moment; at any other time that is an error."""
    sessions = Sessions()
    with chat_server("tiny", sessions=sessions) as server:
        client = ServiceClient(server.url)
        talk = Conversation(
            client,
            ChatOptions("tiny"),
            SessionHistory(SessionsClient(client), {"model": "tiny"}),
            PlainDisplay(lambda text: os.kill(os.getpid(), signal.SIGINT) if text == "on and " else None),
        )
        stopped = talk.ask("forever")
        assert stopped.is_stopped
        sessions.busy = 2
        assert talk.ask("hello").text == PARIS
        sessions.busy = 1
        assert talk.ask("hello").error == f"the session has a turn under way (request {REQUEST_ID})"
