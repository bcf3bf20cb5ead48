"""CPU a token of each tier over a scripted engine, of one or more working trees in turn.

`python -m tests.performance.cost [TREE…]` prints a line a round, then the medians and their ratio to the first tree's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median

from services.cli.models import ensure_default_model, models_directory
from tests.performance.loads import cost_a_token
from tests.performance.scripted_stack import MODEL, REPOSITORY, scripted_stack

TIERS = ("engine", "tokenizer", "frontend")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, default=[REPOSITORY], help="working trees (this one)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--step-seconds", type=float, default=0.02)
    parser.add_argument("--extra-body", default="{}", help="more fields of each request, as JSON")
    arguments = parser.parse_args()
    model = ensure_default_model(models_directory(os.environ), print)
    costs: dict[Path, list[dict[str, float]]] = {tree: [] for tree in arguments.trees}
    for _ in range(arguments.rounds):
        for tree, of_tree in costs.items():
            of_tree.append(_cost(tree, model, arguments))
            print(tree, _line(of_tree[-1]), flush=True)
    first: dict[str, float] | None = None
    for tree, of_tree in costs.items():
        medians = {tier: median(cost[tier] for cost in of_tree) for tier in of_tree[0]}
        first = first or medians
        ratios = {tier: medians[tier] / first[tier] for tier in medians}
        print(f"{tree}: medians {_line(medians)} µs a token; ratio {_line(ratios, 2)}")


def _cost(tree: Path, model: Path, arguments: argparse.Namespace) -> dict[str, float]:
    streams = arguments.streams
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        with scripted_stack(
            model, directory, streams=streams, step_seconds=arguments.step_seconds, tree=tree.resolve()
        ) as stack:
            tiers = {tier: stack.processes[tier][0] for tier in TIERS}
            cost_a_token(stack.url, MODEL, tiers, directory, streams, 20)
            cost = cost_a_token(stack.url, MODEL, tiers, directory, streams, arguments.tokens, arguments.extra_body)
    return cost | {"all": sum(cost.values())}


def _line(cost: dict[str, float], digits: int = 1) -> str:
    return ", ".join(f"{tier} {value:.{digits}f}" for tier, value in cost.items())


if __name__ == "__main__":
    main()
