"""What an output filter adds to a token's cost, with word lists of several sizes.

`python -m tests.performance.filter_cost` prints a line a list: µs a token that a choice takes alone, and what a filter
adds, for the first half of this project's own texts and for the second, when the filter knows how texts go on.
The words are the vocabulary's own with their last letter changed, so that nearly each token begins one and few match.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry

from services.chassis.errors import ServiceError
from services.cli.models import ensure_default_model, models_directory
from services.tokenizer.choice import Choice, ChoiceReader
from services.tokenizer.events import Finish, Parsed
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.output_filters import OutputFilters
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import NewStage, staged
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import TokenizerFiles

REPOSITORY = Path(__file__).parents[2]
PATTERN = r"[\w.]{1,40}@[\w]{1,40}\.[a-z]{2,6}"


class Nobody:
    """A reader that drops what it gets."""

    characters = 0

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """Drop it."""

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Count it."""
        self.characters += len(text)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Drop it."""

    def choice_failed(self, error: ServiceError) -> None:
        """Fail."""
        raise error


@dataclass(frozen=True)
class Cost:
    """Microseconds a token: of a choice alone, and what its filter adds at first and later."""

    alone: float
    added_first: float
    added: float


def texts_of(tokenizer: TextTokenizer) -> list[list[int]]:
    """Token ids of the project's own texts, in an order that mixes their kinds, in pieces of an answer's length."""
    paths = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("services/*/*.py")])
    pieces = []
    for path in sorted(paths, key=lambda path: path.name[::-1]):
        ids = tokenizer.encode(path.read_text(), False)
        pieces += [ids[start : start + 500] for start in range(0, len(ids), 500)]
    return pieces


def words_of(tokenizer: TextTokenizer, count: int) -> list[str]:
    """Words of four letters and more that differ from the vocabulary's in their last letter."""
    known = sorted({text.strip() for text in tokenizer.table.texts if text})
    words = dict.fromkeys(word[:-1] + "q" for word in known if len(word) > 3 and word.isalpha() and word.isascii())
    if len(words) < count:
        raise ValueError(f"the vocabulary gives {len(words)} words; ask for fewer than {count}")
    return list(words)[:: len(words) // count][:count]


def measure(tokenizer: TextTokenizer, rules: str) -> Cost:
    """Measure with a file of these rules. Times are of this process' CPU."""
    texts = texts_of(tokenizer)
    half = len(texts) // 2
    with TemporaryDirectory() as directory:
        path = Path(directory) / "filters.toml"
        path.write_text(rules)
        filters = OutputFilters(path, FilterMetrics(CollectorRegistry()))
    stage = filters.stage("m", "", "r", lambda _: None)
    assert stage is not None
    alone = min(_per_token(tokenizer, texts[half:], None) for _ in range(3))
    first = _per_token(tokenizer, texts[:half], stage)
    later = _per_token(tokenizer, texts[half:], stage)
    return Cost(alone, first - alone, later - alone)


def _per_token(tokenizer: TextTokenizer, texts: Sequence[list[int]], new_stage: NewStage | None) -> float:
    """µs a token, one token a delta."""
    feeds: list[tuple[Callable[[list[int], bool], None], list[list[int]]]] = []
    for ids in texts:
        stages = staged(0, Nobody(), [new_stage]) if new_stage is not None else []
        reader: ChoiceReader = stages[0] if stages else Nobody()
        choice = Choice(0, reader, tokenizer.decoder([500], True), None, False)
        for stage in stages:
            stage.choice = choice
        feeds.append((choice.delta, [[token_id] for token_id in ids]))
    begin = time.process_time()
    for feed, deltas in feeds:
        for delta in deltas:
            feed(delta, False)
    return (time.process_time() - begin) * 1e6 / sum(map(len, texts))


def word_rules(words: Sequence[str], **fields: str) -> str:
    """A file with one masking rule of these words."""
    more = "".join(f"{name} = {value}\n" for name, value in fields.items())
    return f'[[rule]]\nname = "words"\naction = "mask"\nwords = {list(words)!r}\n{more}'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=10_000)
    count = parser.parse_args().words
    model = ensure_default_model(models_directory(os.environ), print)
    tokenizer = TextTokenizer(TokenizerFiles.from_directory(model))
    words = words_of(tokenizer, count)
    pattern = f"[[rule]]\nname = 'pattern'\naction = 'mask'\npatterns = ['''{PATTERN}''']\n"
    for name, rules in {
        f"{count} words": word_rules(words),
        f"{count} words, whole": word_rules(words, whole_words="true"),
        f"{count} words, not folded": word_rules(words, fold="false"),
        f"{count} words, reported": word_rules(words).replace('"mask"', '"report"'),
        "100 words": word_rules(words[:: max(1, count // 100)][:100]),
        "1 pattern": pattern,
        f"{count} words and 1 pattern": word_rules(words) + pattern,
    }.items():
        cost = measure(tokenizer, rules)
        print(
            f"{name}: alone {cost.alone:.2f} µs a token, filter adds {cost.added_first:.2f} at first,"
            f" {cost.added:.2f} later",
            flush=True,
        )


if __name__ == "__main__":
    main()
