"""The options of a run on the command line, and which of them go together."""

from __future__ import annotations

import argparse
import ssl
from pathlib import Path

from services.cli.arguments import UsageError, positive
from services.cli.bench import options as values
from services.cli.bench.options import ENDPOINTS, Lengths, Options

_REQUESTS = 100


def add_options_to(parser: argparse.ArgumentParser) -> None:
    """Add all that makes up a run, but the server's URL."""
    parser.add_argument("--model", metavar="NAME", help="one of the server's models (its first)")
    parser.add_argument("--endpoint", choices=ENDPOINTS, default="chat", help="what is asked for (chat)")
    _add_arrivals_to(parser)
    _add_requests_to(parser)
    measures = parser.add_argument_group("what is measured")
    measures.add_argument(
        "--goodput",
        type=values.goodput,
        default={},
        metavar="NAME=MS,…",
        help=f"share and rate of requests within limits: {', '.join(values.TARGETS)} (itl_ms: the request's own p99)",
    )
    measures.add_argument(
        "--pid",
        type=values.processes,
        action="append",
        default=[],
        metavar="NAME=PID,…",
        help="measure the CPU time of processes, all threads included; repeatable",
    )
    measures.add_argument("--with-children", action="store_true", help="and that of the processes that they started")


def _add_arrivals_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how many and when")
    group.add_argument("--concurrency", type=positive, metavar="N", help="requests under way at a time (1)")
    group.add_argument("--request-rate", type=values.above_zero, metavar="R", help="arrivals a second, at random times")
    group.add_argument(
        "--burstiness",
        type=values.above_zero,
        metavar="B",
        help="of the arrivals: 1 is a Poisson process, less comes in bursts, more comes evenly (1)",
    )
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help='send what it says when it says: a line {"at_s": 0.5, "prompt_tokens": 100, "max_tokens": 20} a request,'
        " or with prompt or messages in place of prompt_tokens",
    )
    group.add_argument("--requests", type=positive, metavar="N", help=f"how many ({_REQUESTS}, or all in the duration)")
    group.add_argument("--duration", type=values.above_zero, metavar="S", help="stop after so many seconds")
    group.add_argument(
        "--warmup", type=positive, default=0, metavar="N", help="requests before, which do not count (0)"
    )
    group.add_argument(
        "--cancel-share",
        type=values.share,
        default=0.0,
        metavar="SHARE",
        help="close the connection of so many requests, 0 to 1, after a random number of chunks (0)",
    )
    group.add_argument("--timeout", type=values.above_zero, default=600.0, metavar="S", help="of one request (600)")
    group.add_argument("--seed", type=int, default=0, help="the same seed, the same requests at the same times (0)")


def _add_requests_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is sent")
    group.add_argument(
        "--prompt-tokens",
        type=values.lengths,
        metavar="N|N-M",
        help="about so many words of text, one token each for most tokenizers, or exactly so many token ids (64)",
    )
    group.add_argument("--prompt-characters", type=values.lengths, metavar="N|N-M", help="text of this length instead")
    group.add_argument("--prompt-ids", action="store_true", help="send random token ids; needs --vocabulary")
    group.add_argument("--vocabulary", type=positive, metavar="N", help="token ids are below this")
    group.add_argument(
        "--output-tokens",
        type=values.lengths,
        default=Lengths(64, 64),
        metavar="N|N-M",
        help="sent as max_tokens (64)",
    )
    group.add_argument(
        "--shared-prefix",
        type=values.shared_prefix,
        metavar="TOKENS[/SHARE]",
        help="put the same text or ids of this length before so many of the prompts, 0 to 1 (1)",
    )
    group.add_argument(
        "--extra-body",
        type=values.extra_body,
        default={},
        metavar="JSON",
        help='more fields of each request, such as {"temperature": 0, "ignore_eos": true}',
    )


def options_of(
    arguments: argparse.Namespace, api_key: str | None = None, trusted: ssl.SSLContext | None = None
) -> Options:
    """Return the run that the arguments ask for.

    Args:
        api_key: sent as bearer token, if any.
        trusted: the authorities behind the server's certificate; None: the system's.

    Raises:
        UsageError: options do not go together.
    """
    _check(arguments)
    scheduled = arguments.trace is not None or arguments.request_rate is not None
    unlimited = arguments.trace is not None or arguments.duration is not None
    return Options(
        url=arguments.url,
        model=arguments.model,
        endpoint=arguments.endpoint,
        concurrency=None if scheduled else arguments.concurrency or 1,
        request_rate=arguments.request_rate,
        burstiness=arguments.burstiness or 1.0,
        requests=arguments.requests or (None if unlimited else _REQUESTS),
        duration_s=arguments.duration,
        trace=arguments.trace,
        prompt_tokens=arguments.prompt_tokens or Lengths(64, 64),
        prompt_characters=arguments.prompt_characters,
        vocabulary=arguments.vocabulary,
        output_tokens=arguments.output_tokens,
        shared_prefix=arguments.shared_prefix,
        cancel_share=arguments.cancel_share,
        extra_body=arguments.extra_body,
        goodput=arguments.goodput,
        processes=arguments.pid,
        with_children=arguments.with_children,
        api_key=api_key,
        trusted=trusted,
        warmup=arguments.warmup,
        timeout_s=arguments.timeout,
        seed=arguments.seed,
    )


def _check(arguments: argparse.Namespace) -> None:
    def refuse(option: str, others: tuple[str, ...]) -> None:
        for other in others:
            if getattr(arguments, other.replace("-", "_")) is not None:
                raise UsageError(f"--{option} and --{other} do not go together; give one of them")

    if arguments.trace is not None:
        refuse("trace", ("concurrency", "request-rate", "requests"))
    if arguments.request_rate is not None:
        refuse("request-rate", ("concurrency",))
    elif arguments.burstiness is not None:
        raise UsageError("--burstiness is of arrivals; give --request-rate with it")
    if arguments.prompt_characters is not None:
        refuse("prompt-characters", ("prompt-tokens",))
    if arguments.prompt_ids != (arguments.vocabulary is not None):
        raise UsageError("--prompt-ids and --vocabulary go together; give both or neither")
    if arguments.prompt_ids and arguments.endpoint != "completions":
        raise UsageError("a chat has no prompt of token ids; give --endpoint completions with --prompt-ids")
    if arguments.prompt_ids and arguments.prompt_characters is not None:
        raise UsageError("token ids have no characters; give --prompt-tokens with --prompt-ids")
    if arguments.with_children and not arguments.pid:
        raise UsageError("--with-children is of processes; give --pid with it")
    names = [group.name for group in arguments.pid]
    if len(set(names)) < len(names):
        raise UsageError("--pid has a name twice; give all of its pids at once, as NAME=PID,PID")
