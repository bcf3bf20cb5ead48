"""The examples of the README and of the page about chats work as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.service import Service

ROOT = Path(__file__).parents[3]
PAGES = "".join((ROOT / page).read_text() for page in ("README.md", "docs/chat.md"))
EXAMPLES = re.findall(r"```(sh|python)\n(.*?)```", PAGES, re.DOTALL)


@pytest.mark.parametrize(("language", "code"), EXAMPLES, ids=[code.split("\n")[0][:40] for _, code in EXAMPLES])
def test_example(service: Service, language: str, code: str) -> None:
    """Run against this service's ports, an example ends well and prints its answer."""
    code = code.replace("127.0.0.1:8000", service.url.removeprefix("http://"))
    code = code.replace("127.0.0.1:50061", service.tokenizer)
    command = ["bash", "-c", code] if language == "sh" else [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    # A curl ends with [DONE], the reflection example prints the two ids of "Hello world", the others an answer.
    expected = "[DONE]" if language == "sh" else "[" if "Reflection" in code else "Paris"
    assert expected in done.stdout


def test_every_example_is_run() -> None:
    """There are the examples that there should be: curl, openai, gRPC, reflection, a session."""
    assert [language for language, _ in EXAMPLES] == ["sh", "python", "python", "python", "sh"]
