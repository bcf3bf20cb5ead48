from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.chat_messages import ContentForm
from services.tokenizer.compiled_template import CompiledTemplate
from services.tokenizer.template_environment import chat_environment
from services.tokenizer.tokenizer_files import TokenizerFilesError


def compiled(source: str) -> CompiledTemplate:
    """The compiled template of this source."""
    return CompiledTemplate(chat_environment(), "default", source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('Roles must alternate') }}", "refused the messages: Roles must alternate"),
        ("{{ persona.name }}", "undefined: 'persona' is undefined"),
        ("{{ 'a' + none }}", "failed on the messages: TypeError"),
        ("{{ 1 / 0 }}", "failed on the messages: ZeroDivisionError"),
        ("{{ items.append(1) }}", "undefined: "),
        ("{{ [].append(1) }}", "refused the messages: access to attribute 'append'"),
        ("{{ ''.__class__.__mro__ }}", "refused the messages: access to attribute '__class__'"),
    ],
)
def test_a_failing_template_is_an_error_of_the_request(source: str, words: str) -> None:
    """The template's own message, the undefined name, or the kind of failure is named."""
    with pytest.raises(InvalidRequest) as caught:
        compiled(source).text({})
    assert words in caught.value.message
    assert (caught.value.param, caught.value.reason) == ("messages", "CHAT_TEMPLATE_FAILED")


def test_an_undefined_name_that_is_only_printed_or_tested_is_empty() -> None:
    """Templates rely on it: `{% if tools %}`, `{{ bos_token }}`."""
    assert compiled("{{ bos_token }}{% if tools %}x{% endif %}{% if x is defined %}y{% endif %}").text({}) == ""


def test_a_template_that_does_not_compile_is_the_models_fault() -> None:
    """The line is named, when the model is loaded."""
    with pytest.raises(TokenizerFilesError, match="'default' does not compile, line 2"):
        compiled("a\n{% if %}")


@pytest.mark.parametrize(
    ("source", "form"),
    [
        ("{{ messages[0].content }}", ContentForm.STRING),
        ("{% for message in messages %}{{ message['content'] | trim }}{% endfor %}", ContentForm.STRING),
        ("{% for part in message['content'] %}{{ part.text }}{% endfor %}", ContentForm.PARTS),
        ("{% for part in message.content %}{{ part.text }}{% endfor %}", ContentForm.PARTS),
        (
            "{% if content is string %}{{ content }}{% else %}{% for x in content %}{{ x }}{% endfor %}{% endif %}",
            ContentForm.STRING_OR_PARTS,
        ),
    ],
)
def test_the_form_of_content_follows_the_template(source: str, form: ContentForm) -> None:
    """A loop over content means parts; a question whether it is a string means both."""
    assert compiled(source).form is form
