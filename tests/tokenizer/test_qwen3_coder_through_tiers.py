"""A model whose template writes calls as Qwen3-Coder's does, through both tiers over a scripted engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.tokenizer.engine_fixtures import Answer, running_tiers, sampling

# Tools, and earlier calls with their values as text: all that the format needs of a template.
TEMPLATE = """\
{%- for tool in tools %}{{ tool | tojson }}\n{% endfor %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\n<function=' + call.function.name + '>\n' }}
{%- for name, value in call.function.arguments | items %}
{{- '<parameter=' + name + '>\n' + value | string + '\n</parameter>\n' }}
{%- endfor %}
{{- '</function>\n</tool_call>' }}
{%- endfor %}{{ '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOL = chat_pb2.Tool(name="get_weather", parameters_json=json.dumps(SCHEMA))
CALL = """\
<tool_call>
<function=get_weather>
<parameter=city>
7
</parameter>
<parameter=days>
7
</parameter>
</function>
</tool_call>"""
ARGUMENTS = '{"city": "7", "days": 7}'
SEED = 5


def arguments_of(answer: Answer) -> str:
    """The arguments of the answer's calls, piece by piece."""
    return "".join(piece.arguments_json for delta in answer.deltas for piece in delta.tool_calls)


async def test_calls_are_read_and_written(smollm2: Path, tmp_path: Path) -> None:
    """The format follows from the template: a call streams as typed JSON, ends the answer as a call, and goes back
    into the next prompt as the text that it was made of."""
    model = tmp_path / "coder"
    shutil.copytree(smollm2, model, ignore=shutil.ignore_patterns("*.safetensors"))
    (model / "chat_template.jinja").write_text(TEMPLATE)
    user = chat_pb2.ChatMessage(role="user", text="Weather?")
    async with running_tiers(model) as tier:
        tier.engine.lines.by_seed[SEED] = tier.encode(f"I look.\n{CALL}")
        asked = text_pb2.GenerateRequest(
            chat=chat_pb2.ChatPrompt(messages=[user], tools=[TOOL]), sampling_params=sampling(seed=SEED)
        )
        answer = await tier.generate(asked)
        assert (answer.text(), arguments_of(answer)) == ("I look.\n", ARGUMENTS)
        assert answer.finish.reason == sampling_pb2.FINISH_REASON_TOOL_CALLS
        assert sum(len(delta.tool_calls) for delta in answer.deltas) > 3
        call = chat_pb2.ToolCall(id="c", name="get_weather", arguments_json=ARGUMENTS)
        said = chat_pb2.ChatMessage(role="assistant", text="", tool_calls=[call])
        chat = chat_pb2.ChatPrompt(messages=[user, said], tools=[TOOL])
        rendered = await tier.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
        assert CALL in rendered.text
