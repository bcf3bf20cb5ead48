"""What a format check adds to a token's cost: `python -m tests.performance.format_cost`.

Prints a line a check: µs a token that a choice takes alone, and what the check adds, for texts that it has to look at
closely, JSON and this project's own modules in a code block, and for prose, of which code blocks have little to see.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence

from services.cli.models import ensure_default_model, models_directory
from services.tokenizer.choice import Choice, ChoiceReader
from services.tokenizer.findings import FormatCheck
from services.tokenizer.format_checks.format_stage import format_stage
from services.tokenizer.output_stage import NewStage, staged
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import TokenizerFiles
from tests.performance.filter_cost import REPOSITORY, Nobody


def documents() -> dict[str, tuple[FormatCheck, str]]:
    """Texts without a fault, by what they are, with the check that they are for."""
    modules = {path.name: path.read_text() for path in sorted(REPOSITORY.glob("services/tokenizer/*.py"))}
    lines = {name: [{"line": line, "length": len(line)} for line in text.split("\n")] for name, text in modules.items()}
    prose = "\n".join(path.read_text() for path in sorted(REPOSITORY.glob("*.md")))
    return {
        "JSON": (FormatCheck.JSON, json.dumps(lines, indent=1)),
        "code": (FormatCheck.CODE_BLOCKS, "".join(f"~~~~python\n{text}\n~~~~\n" for text in modules.values())),
        "prose": (FormatCheck.CODE_BLOCKS, prose),
    }


def microseconds_a_token(
    tokenizer: TextTokenizer, token_ids: Sequence[int], new_stages: Sequence[NewStage], rounds: int
) -> float:
    """The least of some rounds: a choice with these stages is given one token after the other."""
    frames = [[token_id] for token_id in token_ids]
    best = float("inf")
    for _ in range(rounds):
        nobody = Nobody()
        stages = staged(0, nobody, new_stages) if new_stages else []
        reader: ChoiceReader = stages[0] if stages else nobody
        choice = Choice(0, reader, tokenizer.decoder([500]), None, False)
        for stage in stages:
            stage.choice = choice
        begin = time.process_time()
        for frame in frames:
            choice.delta(frame, False)
        best = min(best, time.process_time() - begin)
        assert nobody.characters
        assert all(not stage.findings.format_faults for stage in stages)
    return best / len(frames) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    model = ensure_default_model(models_directory(os.environ), print)
    tokenizer = TextTokenizer(TokenizerFiles.from_directory(model))
    for name, (check, text) in documents().items():
        token_ids = tokenizer.encode(text, False)
        alone = microseconds_a_token(tokenizer, token_ids, [], arguments.rounds)
        checked = microseconds_a_token(tokenizer, token_ids, [format_stage([check], False)], arguments.rounds)
        print(
            f"{name} of {len(token_ids)} tokens: alone {alone:.2f} µs a token, {check.value} adds {checked - alone:.2f}"
        )


if __name__ == "__main__":
    main()
