from __future__ import annotations

from datetime import datetime

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from services.tokenizer.template_environment import chat_environment

_VALUE: dict[str, object] = {"b": "<a href='x'> & \"漢字\"\n", "a": [1, None, True, {}]}


@pytest.mark.parametrize(
    "source",
    [
        "{{ value | tojson }}",
        "{{ value | tojson(indent=2) }}",
        "{{ value | tojson(sort_keys=true, separators=(',', ':')) }}",
        "{{ value | tojson(ensure_ascii=true) }}",
        "{% for x in [1, 2, 3, 4] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
        "{% for x in [1, 2, 3, 4] %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
        "  {% if true %}\n  a\n  {% endif %}\nb",
        "{% set x = 1 %}{% generation %}{% set x = 2 %}a{{ x }}{% endgeneration %}{{ x }}",
        "{% set ns = namespace(n=0) %}{% for x in 'abc' %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    ],
)
def test_templates_render_as_in_transformers(source: str) -> None:
    """Filters, loop controls, white space and the generation tag are those that templates were written for."""
    expected = render_jinja_template(conversations=[[]], chat_template=source, value=_VALUE)[0][0]
    assert chat_environment().from_string(source).render(value=_VALUE) == expected


def test_the_time_is_a_variable() -> None:
    """`strftime_now` is what the rendering was given, so that two renderings of a request agree."""
    template = chat_environment().from_string("{{ strftime_now('%d %b %Y') }}")
    assert template.render(strftime_now=datetime(2024, 7, 26).strftime) == "26 Jul 2024"
