"""The `llm` tool, with a model of its extra-openai-models.yaml."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios import (
    BASE_URL,
    COPIED_CALL,
    ENDLESS,
    FEW_TOKENS,
    MAX_TOKENS,
    MODEL,
    PIECES_BEFORE_LEAVING,
    PROXY_BASE_URL,
    QUESTION,
    TOO_MANY_TOKENS,
    TOOL_DESCRIPTION,
    TOOL_NAME,
    TOOL_PARAMETERS,
    TOOL_RESULT,
    UNKNOWN,
    Place,
    called,
    serve,
    told,
)

_ABLE = "supports_schema: true, supports_tools: true"
_MODELS = f"""
- {{model_id: served, model_name: {MODEL}, api_base: "{BASE_URL}", {_ABLE}}}
- {{model_id: proxied, model_name: {MODEL}, api_base: "{PROXY_BASE_URL}", {_ABLE}}}
- {{model_id: absent, model_name: {UNKNOWN}, api_base: "{BASE_URL}"}}
"""


def main() -> None:
    """Serve the scenarios with a configuration in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "extra-openai-models.yaml").write_text(_MODELS)
        os.environ["LLM_USER_PATH"] = directory
        import llm
        import openai

        served, proxied, absent = (llm.get_model(name) for name in ("served", "proxied", "absent"))
        tool = llm.Tool(TOOL_NAME, TOOL_DESCRIPTION, TOOL_PARAMETERS, lambda city: TOOL_RESULT)

        def ask(model: Any, question: str = QUESTION, **options: Any) -> Any:
            options = {"stream": False, "max_tokens": MAX_TOKENS, **options}
            return model.prompt(question, key="none", temperature=0, **options)

        def chat() -> Mapping[str, Any]:
            response = ask(served)
            text = response.text()
            return {"text": text, "completion_tokens": response.usage().output}

        def stream() -> Mapping[str, Any]:
            return {"pieces": list(ask(served, stream=True))}

        def failed(model: Any, **options: Any) -> Mapping[str, Any]:
            try:
                return {"text": ask(model, **options).text()}
            except openai.APIStatusError as failure:
                return told(failure)

        def error() -> Mapping[str, Any]:
            return failed(absent)

        def invalid() -> Mapping[str, Any]:
            return failed(served, max_tokens=TOO_MANY_TOKENS)

        def leave() -> Mapping[str, Any]:
            pieces = iter(ask(served, stream=True, **ENDLESS))
            seen = [next(pieces) for _ in range(PIECES_BEFORE_LEAVING)]
            pieces.close()
            # It closes no response itself; that is left to the garbage collector.
            gc.collect()
            return {"pieces": seen}

        def structured() -> Mapping[str, Any]:
            return {"value": Place.model_validate_json(ask(served, schema=Place).text()).model_dump()}

        def call() -> Mapping[str, Any]:
            (made,) = ask(served, COPIED_CALL, tools=[tool]).tool_calls()
            return called(made.name, made.arguments)

        def call_stream() -> Mapping[str, Any]:
            response = ask(served, COPIED_CALL, tools=[tool], stream=True)
            text = list(response)
            (made,) = response.tool_calls()
            return called(made.name, made.arguments, content="".join(text))

        def round_trip() -> Mapping[str, Any]:
            conversation = proxied.conversation()
            first = ask(conversation, COPIED_CALL, tools=[tool])
            (made,) = first.tool_calls()
            results = first.execute_tool_calls()
            answer = ask(conversation, "", tool_results=results, max_tokens=FEW_TOKENS)
            return called(made.name, made.arguments, text=answer.text())

        def retry() -> Mapping[str, Any]:
            return {"text": ask(proxied, max_tokens=FEW_TOKENS).text()}

        def refused() -> Mapping[str, Any]:
            return failed(proxied, max_tokens=TOO_MANY_TOKENS)

        serve(chat, stream, error, invalid, leave, structured, call, call_stream, round_trip, retry, refused)


if __name__ == "__main__":
    main()
