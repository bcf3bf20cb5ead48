"""A chat template that shows tools, made of one that shows none."""

from __future__ import annotations

from pathlib import Path

_TOOLS = Path(__file__).with_name("tools_template.jinja")
# What models that think on demand do: the prompt opens the reasoning.
_THINKING = "{%- if add_generation_prompt and thinking %}\n{{- '<think>\\n' }}\n{%- endif %}"


def with_tools(template: str) -> str:
    """Return a ChatML template's source with tools, calls and results, told as our tokenizer tells them where a model's
    template does not; with the variable `thinking` the prompt ends with `<think>` and a line end."""
    return _TOOLS.read_text(encoding="utf-8").replace("WITHOUT TOOLS", template) + _THINKING
