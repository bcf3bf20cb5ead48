"""`make bench`: this service beside vLLM's own server, and docs/performance.md made of what came out."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from services.cli.models import ensure_default_model, models_directory
from tests.performance.comparison.measuring import Figures, measure
from tests.performance.comparison.page import page
from tests.performance.comparison.plots import plot
from tests.performance.comparison.scaling import measure_scaling
from tests.performance.comparison.servers import Target, ours, peer
from tests.performance.comparison.targets import compare
from tests.tiny_model import TINY_MODEL_NAME, make_tiny_model

DOCS = Path(__file__).parents[3] / "docs"

Server = Callable[[Path, Path], AbstractContextManager[Target]]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each server (3)")
    rounds = parser.parse_args().rounds
    default = ensure_default_model(models_directory(os.environ), print)
    model = make_tiny_model(default.parent / TINY_MODEL_NAME, default)
    figures: dict[str, list[Figures]] = {"peer": [], "ours": []}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        for number in range(rounds):
            servers: dict[str, Server] = {"peer": peer, "ours": ours}
            for name, server in servers.items():
                figures[name].append(_round(server, model, directory / f"{name}-{number}.log"))
                print(f"round {number + 1} of {rounds}, {name}: {figures[name][-1]}", flush=True)
        scaling = measure_scaling(model, directory)
    comparisons = compare(figures["ours"], figures["peer"])
    plot(comparisons, DOCS / "performance")
    text = page(comparisons, figures["ours"], figures["peer"], scaling)
    (DOCS / "performance.md").write_text(text, encoding="utf-8")
    print(text)


def _round(server: Server, model: Path, log_file: Path) -> Figures:
    with server(model, log_file) as target:
        return measure(target)


if __name__ == "__main__":
    main()
