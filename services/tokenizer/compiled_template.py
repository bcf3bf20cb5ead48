"""One compiled chat template: variables in, text out, failures as errors of the request."""

from __future__ import annotations

from collections.abc import Mapping

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.chassis.errors import InvalidRequest
from services.tokenizer.chat_messages import ContentForm
from services.tokenizer.template_environment import iterates_content, tests_for_string
from services.tokenizer.tokenizer_files import TokenizerFilesError

# What a template can raise on messages that it does not expect; each is the fault of the request.
_TEMPLATE_FAILURES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


class CompiledTemplate:
    """A template compiled once.

    Attributes:
        source: the Jinja text.
        form: the form of message content that it takes.

    Raises:
        TokenizerFilesError: the source does not compile.
    """

    __slots__ = ("_template", "form", "source")

    def __init__(self, environment: ImmutableSandboxedEnvironment, name: str, source: str) -> None:
        try:
            tree = environment.parse(source)
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TokenizerFilesError(
                f"chat template {name!r} does not compile, line {error.lineno}: {error.message}"
            ) from error
        self.source = source
        if not iterates_content(tree):
            self.form = ContentForm.STRING
        else:
            self.form = ContentForm.STRING_OR_PARTS if tests_for_string(tree) else ContentForm.PARTS

    def text(self, variables: Mapping[str, object]) -> str:
        """What the template prints.

        Raises:
            InvalidRequest: the template raised, used an undefined name, or failed on a value.
        """
        try:
            return self._template.render(variables)
        except jinja2.UndefinedError as error:
            message = f"the chat template needs a name that is undefined: {error.message}"
        except jinja2.TemplateError as error:
            message = f"the chat template refused the messages: {error.message}"
        except _TEMPLATE_FAILURES as error:
            message = f"the chat template failed on the messages: {type(error).__name__}: {error}"
        raise InvalidRequest(message, param="messages", reason="CHAT_TEMPLATE_FAILED")
