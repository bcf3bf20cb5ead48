"""A model whose chat template stands in chat_template.json alone, and refuses some chats: all tiers, over HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.tokenizer.all_tiers import Tiers, all_tiers
from tests.tokenizer.conftest import DirectoryOf

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOS, END = 1, 2
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'system' %}{{ raise_exception('Only user and assistant') }}{% endif %}"
    "{% if message.name %}{{ personas[message.name].style }}{% endif %}"
    "[{{ message.content }}]{% endfor %}"
)
USER = {"role": "user", "content": "Hello"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tiers(directory_of: DirectoryOf, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tiers]:
    """All tiers with Llama 2's tokenizer, which adds BOS itself, and a template that prints it too."""
    directory = tmp_path_factory.mktemp("model")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(directory_of("llama2") / name, directory / name)
    (directory / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    async with all_tiers(directory, (END,)) as running:
        yield running


async def chat(tiers: Tiers, *messages: dict[str, Any]) -> str:
    """The answer to a chat: the engine says the prompt back."""
    response = await tiers.post("chat/completions", messages=messages, skip_special_tokens=False)
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


async def test_a_template_in_chat_template_json(tiers: Tiers) -> None:
    """Such a model takes chats; where the template prints BOS and the tokenizer adds it, there is one."""
    assert (await chat(tiers, USER)).replace(" ", "") == "<s>[Hello]"
    prompt = list(tiers.text.engine.lines.requests[-1].prompt_token_ids)
    assert (prompt[0], prompt.count(BOS)) == (BOS, 1)
    await tiers.post("completions", prompt="Hello", max_tokens=1)
    assert tiers.text.engine.lines.requests[-1].prompt_token_ids.count(BOS) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "system", "content": "x"}, "the chat template refused the messages: Only user and assistant"),
        ({**USER, "name": "Ada"}, "the chat template needs a name that is undefined: 'personas' is undefined"),
    ],
)
async def test_a_template_that_fails(tiers: Tiers, message: dict[str, Any], words: str, stream: bool) -> None:
    """What it raises, or the name that it lacks, is told with status 400, before a stream begins."""
    response = await tiers.post("chat/completions", messages=[message], stream=stream)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", "messages")
    assert words in error["message"]


async def test_parts_and_null_content(tiers: Tiers) -> None:
    """Parts are joined before the template sees them; an assistant may have said nothing."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    text = await chat(tiers, {"role": "user", "content": parts}, {"role": "assistant", "content": None}, USER)
    assert text.replace(" ", "") == "<s>[a\nb][][Hello]"


async def test_the_first_tokens_space(tiers: Tiers) -> None:
    """`▁Hello` is " Hello" after a prompt with text and "Hello" after one of BOS alone, streamed and not; bytes
    that are no character are U+FFFD each, beside whole ones."""
    vocabulary = tiers.reference.get_vocab()
    hello, a = vocabulary["▁Hello"], vocabulary["a"]
    llama = [vocabulary[f"<0x{byte:02X}>"] for byte in b"\xf0\x9f\xa6\x99\xf0"]
    tiers.text.engine.lines.by_seed |= {1: [hello], 2: [*llama, a]}
    for seed, prompt, expected in (
        (1, [BOS, hello], " Hello"),
        (1, [BOS], "Hello"),
        (2, [BOS], "\N{LLAMA}\ufffda"),
    ):
        asked = {"prompt": prompt, "seed": seed}
        whole = (await tiers.post("completions", **asked)).json()["choices"][0]["text"]
        chunks = await tiers.chunks("completions", **asked)
        assert whole == "".join(chunk["choices"][0]["text"] for chunk in chunks) == expected
