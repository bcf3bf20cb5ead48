"""The part of the contract that says what structured output does. Run on engines that know a tokenizer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tokenizers import Tokenizer

from services.chassis.errors import InvalidRequest
from services.engine.port import FinishReason, Sampling
from services.engine.structured_output import Choice, Grammar, JsonObject, JsonSchema, Regex, StructuredOutput
from tests.contracts.contract_requests import END_TOKEN, GREEDY, changed, prompt
from tests.contracts.live_engine import LiveEngine

OBJECT = JsonSchema(json.dumps({"const": {"name": "Ünïcode 🦙", "count": 3, "of": [True, None]}}))
RECURSIVE = JsonSchema(
    json.dumps(
        {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
            "required": ["value"],
            "additionalProperties": False,
        }
    )
)
ALTERNATIVES = JsonSchema('{"oneOf": [{"const": "a"}, {"type": "string", "enum": ["a", "b"]}]}')
# What each allows is far shorter than this.
ENOUGH = Sampling(temperature=0.0, max_tokens=200)

BAD: list[tuple[StructuredOutput, str]] = [
    (JsonSchema('{"type": "strnig"}'), "strnig"),
    (JsonSchema('{"$ref": "#/$defs/missing"}'), "missing"),
    (JsonSchema('{"$ref": "#"}'), "no output"),
    (JsonSchema('{"type": "string", "pattern": "(a"}'), "unclosed|parse"),
    (JsonSchema('{"not": {"type": "string"}}'), "not"),
    (Regex("(a"), "regex"),
    (Regex(r"(a)\1"), "regex"),
    (Regex("((a{100}){100}){100}"), "too many|too much work"),
    (Grammar("root ::= ("), "."),
    (Grammar('start: "a'), "."),
    (Grammar("root ::= root"), "no output"),
]


class StructuredContract:
    @pytest.mark.parametrize("temperature", [0.0, 1.0])
    @pytest.mark.parametrize(
        ("output", "allowed"),
        [
            (Choice(("yes", "no")), {"yes", "no"}),
            (Choice(('"quoted"\n', "ü🦙")), {'"quoted"\n', "ü🦙"}),
            (Regex("ab{3}c"), {"abbbc"}),
            (Grammar('root ::= "x" | "y" "z"'), {"x", "yz"}),
            (Grammar('start: "hello" " world"'), {"hello world"}),
            (ALTERNATIVES, {'"a"', '"b"'}),
        ],
    )
    async def test_output_is_an_allowed_text(
        self, live: LiveEngine, tokenizer: Tokenizer, output: StructuredOutput, allowed: set[str], temperature: float
    ) -> None:
        """The ids decode to a text that the constraint allows, and nothing but the end token is beside it."""
        record = await live.constrained(prompt(30), changed(ENOUGH, structured_output=output, temperature=temperature))
        assert tokenizer.decode(record.token_ids, skip_special_tokens=True) in allowed
        assert record.token_ids.count(END_TOKEN) == 1 and record.token_ids[-1] == END_TOKEN
        assert record.finish.reason is FinishReason.STOP

    async def test_const_schema_is_its_json(self, live: LiveEngine, tokenizer: Tokenizer) -> None:
        """A schema of one value gives that value, through bytes of characters that are split over tokens."""
        record = await live.constrained(prompt(31), changed(ENOUGH, structured_output=OBJECT))
        text = tokenizer.decode(record.token_ids, skip_special_tokens=True)
        assert json.loads(text) == json.loads(OBJECT.schema_json)["const"]

    @pytest.mark.parametrize("output", [RECURSIVE, JsonObject(), Regex("(a+)+b"), Regex("((a{0,100}){0,100}){0,100}")])
    async def test_endless_texts_hold_nobody_up(self, live: LiveEngine, output: StructuredOutput) -> None:
        """Recursion and nested repetition cost no more at the last token than at the first; others go on."""
        begin = time.monotonic()
        endless = await live.launch(prompt(32), changed(ENOUGH, structured_output=output, temperature=1.0, seed=1))
        other = await live.end_of(live.start(prompt(33), GREEDY))
        assert len(other.token_ids) == 12
        await live.end_of(endless)
        assert endless.finish.reason in (FinishReason.STOP, FinishReason.LENGTH)
        assert time.monotonic() - begin < 20.0

    async def test_what_a_limit_cuts_off_has_failed(self, live: LiveEngine) -> None:
        """An output that the constraint's own complexity ends is no success, and the engine serves on."""
        output = Regex("(([a-z]{0,1000}){0,1000}){0,1000}x")
        record = await live.constrained(prompt(37), changed(ENOUGH, structured_output=output))
        assert record.outputs[-1].failed and not any(one.finish for one in record.outputs)
        assert len((await live.generate(prompt(36), GREEDY)).token_ids) == 12

    @pytest.mark.parametrize(("output", "says"), BAD)
    async def test_what_cannot_compile_is_refused(self, live: LiveEngine, output: StructuredOutput, says: str) -> None:
        """Within 1 s, by a text that says why, also after a good one; a good one after it is served."""
        good = changed(ENOUGH, structured_output=Choice(("yes",)))
        await live.constrained(prompt(34), good)
        begin = time.monotonic()
        with pytest.raises(InvalidRequest, match=says) as refused:
            await live.engine.compile(output)
        assert time.monotonic() - begin < 1.0
        assert refused.value.param == "structured_output" and "\n" not in refused.value.message
        assert (await live.constrained(prompt(34), good)).finish.reason is FinishReason.STOP

    @pytest.mark.parametrize(
        "changes",
        [
            {"min_tokens": 20, "max_tokens": 30},
            {"ignore_eos": True, "max_tokens": 30},
            {"allowed_token_ids": (1000,), "max_tokens": 30},
            {"logit_bias": dict.fromkeys(range(1024), -100.0), "max_tokens": 30},
            {"stop_token_ids": (9,), "logprobs": 5},
            {"top_p": 0.01, "min_p": 1.0, "repetition_penalty": 2.0},
        ],
    )
    async def test_contradictions_leave_it_alive(self, live: LiveEngine, changes: dict[str, Any]) -> None:
        """Parameters that leave a constraint no token end in some way, and the engine serves on."""
        sampling = changed(ENOUGH, structured_output=Choice(("yes", "no")), temperature=1.0)
        record = await live.constrained(prompt(35), changed(sampling, **changes))
        assert all(0 <= token_id < 49152 for token_id in record.token_ids)
        assert len((await live.generate(prompt(36), GREEDY)).token_ids) == 12

    async def test_many_schemas(self, live: LiveEngine) -> None:
        """A thousand different schemas compile, at no more than a few milliseconds each."""
        begin = time.monotonic()
        for number in range(1000):
            await live.engine.compile(JsonSchema(json.dumps({"const": number})))
        assert time.monotonic() - begin < 20.0
