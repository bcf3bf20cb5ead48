from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.chat_messages import ContentForm, template_messages

_PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("content", "form", "expected"),
    [
        ("a", ContentForm.STRING, "a"),
        ("a", ContentForm.STRING_OR_PARTS, "a"),
        ("a", ContentForm.PARTS, [{"type": "text", "text": "a"}]),
        (_PARTS, ContentForm.STRING, "a\nb"),
        (_PARTS, ContentForm.STRING_OR_PARTS, _PARTS),
        (_PARTS, ContentForm.PARTS, _PARTS),
        ([], ContentForm.STRING, ""),
    ],
)
def test_content_takes_the_form_of_the_template(content: object, form: ContentForm, expected: object) -> None:
    """Parts are joined before a string template sees them, and text is wrapped for one that takes parts."""
    assert template_messages([{"role": "user", "content": content}], form)[0]["content"] == expected


@pytest.mark.parametrize("message", [{"role": "assistant", "content": None}, {"role": "assistant"}])
def test_an_assistant_message_may_have_no_content(message: dict[str, object]) -> None:
    """Null content is empty text on an assistant message."""
    assert template_messages([message], ContentForm.STRING)[0]["content"] == ""
    assert template_messages([message], ContentForm.PARTS)[0]["content"] == []


@pytest.mark.parametrize(
    ("messages", "param", "words"),
    [
        ([], "messages", "at least one"),
        ([{"content": "a"}], "messages[0].role", "no role"),
        ([{"role": "user", "content": None}], "messages[0].content", "only an assistant message may have"),
        ([{"role": "user", "content": "a"}, {"role": "tool"}], "messages[1].content", "only an assistant message"),
        ([{"role": "user", "content": 1}], "messages[0].content", "neither text nor a list"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0]", "type 'image_url'"),
        ([{"role": "user", "content": [_PARTS[0], "b"]}], "messages[0].content[1]", "type None"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text", "needs a string"),
    ],
)
def test_bad_messages_are_refused_by_place(messages: list[dict[str, object]], param: str, words: str) -> None:
    """The error names the message and the field."""
    with pytest.raises(InvalidRequest, match=words) as caught:
        template_messages(messages, ContentForm.STRING)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [('{"a": 1}', {"a": 1}), ("", {}), (None, {}), ({"a": 1}, {"a": 1}), ('{"a', '{"a'), ("[" * 99_999, "[" * 99_999)],
)
def test_tool_call_arguments_become_objects(arguments: object, expected: object) -> None:
    """Templates print arguments as objects; text that is no JSON object stays as the model wrote it."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    (message,) = template_messages([{"role": "assistant", "tool_calls": [call]}], ContentForm.STRING)
    assert message["tool_calls"] == [{**call, "function": {"name": "f", "arguments": expected}}]
    assert call["function"] == {"name": "f", "arguments": arguments}


def test_an_empty_list_of_tool_calls_is_left_out() -> None:
    """Templates ask whether there are tool calls by the key alone."""
    messages = template_messages([{"role": "assistant", "content": "a", "tool_calls": []}], ContentForm.STRING)
    assert messages == [{"role": "assistant", "content": "a"}]
