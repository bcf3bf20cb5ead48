"""The sandboxed Jinja environment of chat templates, as Hugging Face's transformers defines it.

Templates come with the model and are trusted to end; the sandbox bounds no work. Never compile one from a request.
"""

from __future__ import annotations

import json
from typing import NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


def chat_environment() -> ImmutableSandboxedEnvironment:
    """A new environment with what chat templates may call: `tojson`, `raise_exception`, loop controls, `generation`.

    `strftime_now` is no part of it: it is a variable of each rendering, so that rendering twice gives one text.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    return environment


class _GenerationTag(Extension):
    """`{% generation %} … {% endgeneration %}` marks an answer for training; here it prints its body and no more."""

    tags = {"generation"}  # noqa: RUF012  jinja2 declares it as an instance's attribute

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def iterates_content(template: nodes.Template) -> bool:
    """Whether the template loops over a message's `content`, so that it takes a list of parts."""
    for loop in template.find_all(nodes.For):
        match loop.iter:
            case nodes.Name(name="content") | nodes.Getattr(attr="content"):
                return True
            case nodes.Getitem(arg=nodes.Const(value="content")):
                return True
    return False


def tests_for_string(template: nodes.Template) -> bool:
    """Whether the template asks if something `is string`, so that it takes both strings and lists."""
    return any(test.name == "string" for test in template.find_all(nodes.Test))


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes characters that are special in HTML, which a model never saw in training.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
