"""The `llm` tool, with a model of its extra-openai-models.yaml."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios import BASE_URL, ENDLESS, MAX_TOKENS, MODEL, PIECES_BEFORE_LEAVING, QUESTION, UNKNOWN, serve, told

_MODELS = f"""
- {{model_id: served, model_name: {MODEL}, api_base: "{BASE_URL}"}}
- {{model_id: absent, model_name: {UNKNOWN}, api_base: "{BASE_URL}"}}
"""


def main() -> None:
    """Serve the scenarios with a configuration in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "extra-openai-models.yaml").write_text(_MODELS)
        os.environ["LLM_USER_PATH"] = directory
        import llm
        import openai

        served, absent = llm.get_model("served"), llm.get_model("absent")

        def ask(model: Any, stream: bool, **options: Any) -> Any:
            return model.prompt(QUESTION, stream=stream, key="none", **{"temperature": 0, **options})

        def chat() -> Mapping[str, Any]:
            response = ask(served, False, max_tokens=MAX_TOKENS)
            text = response.text()
            return {"text": text, "completion_tokens": response.usage().output}

        def stream() -> Mapping[str, Any]:
            return {"pieces": list(ask(served, True, max_tokens=MAX_TOKENS))}

        def error() -> Mapping[str, Any]:
            try:
                return {"text": ask(absent, False).text()}
            except openai.APIStatusError as failure:
                return told(failure)

        def leave() -> Mapping[str, Any]:
            pieces = iter(ask(served, True, **ENDLESS))
            seen = [next(pieces) for _ in range(PIECES_BEFORE_LEAVING)]
            pieces.close()
            # It closes no response itself; that is left to the garbage collector.
            gc.collect()
            return {"pieces": seen}

        serve({"chat": chat, "stream": stream, "error": error, "leave": leave})


if __name__ == "__main__":
    main()
