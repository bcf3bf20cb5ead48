"""`stream-omni up`: all tiers on one machine, supervised."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from services.chassis.logs import configure_logs
from services.cli.arguments import CommandError, Commands, engine_arg, engine_args, port, positive
from services.cli.commands.tier import check_installed
from services.cli.models import default_model_path, ensure_default_model, models_directory
from services.cli.supervised_tier import Patience, TierFailed
from services.cli.tier import Tier

if TYPE_CHECKING:
    from services.cli.up_settings import UpOptions, UpSettings

_DESCRIPTION = """\
Starts engine, tokenizer and frontend on this machine and keeps them up. When all serve, it prints one line with the
URL and a curl. Ctrl-C ends them: what runs is finished first; a second Ctrl-C ends everything at once.

Every setting of a tier can also be given as an environment variable OMNI_ENGINE_…, OMNI_TOKENIZER_… or
OMNI_FRONTEND_…; the options below go over these."""
_FORCED = 130


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("up", help="start all tiers on this machine", description=_DESCRIPTION)
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="MODEL", nargs="?", help="directory or hub id (the default model)")
    parser.add_argument("--port", type=port, metavar="P", help="of the HTTP service (8000)")
    parser.add_argument("--engine-port", type=port, metavar="P", help="of the engine's gRPC service (50051)")
    parser.add_argument(
        "--tokenizer-port",
        type=port,
        metavar="P",
        help="of the first tokenizer's gRPC service; the next take the next (50061)",
    )
    parser.add_argument("--tokenizers", type=positive, default=1, metavar="N", help="number of tokenizer processes (1)")
    parser.add_argument("--served-name", metavar="NAME", help="the model's name in requests (the last part of MODEL)")
    parser.add_argument(
        "--engine-arg",
        type=engine_arg,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="argument for vLLM, such as max-model-len=4096; VALUE is JSON or text; may be given again",
    )
    parser.add_argument("--filters-file", metavar="FILE", help="TOML file of rules for what may leave")
    parser.add_argument(
        "--state-dir", metavar="DIR", help="of what outlives the service, such as sessions (~/.local/state/stream-omni)"
    )
    parser.add_argument("--engine-metrics-port", type=port, metavar="P", help="of the engine's metrics (9101)")
    parser.add_argument(
        "--tokenizer-metrics-port", type=port, metavar="P", help="of the first tokenizer's metrics (9111)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Start the tiers and supervise them until a signal.

    Returns: 0 after the first signal, 130 after a second.

    Raises:
        UsageError: something is wrong with options, ports, model or memory; nothing was started.
        SettingsError: a setting is wrong; nothing was started.
        CommandError: a tier is not installed, or ended before it was ever ready; nothing runs any more.
        BuildError: the default model cannot be fetched.
    """
    for tier in ("engine", "tokenizer", "frontend"):
        check_installed(tier)
    from services.cli.preflight import available_memory, check_memory, check_ports, locate_model
    from services.cli.tiers import tiers

    # These stand on all tiers' packages, which whoever only talks to a service does not have.
    from services.cli.up_settings import load_settings, own_ports

    models = models_directory(os.environ)
    named = arguments.model or os.environ.get("OMNI_ENGINE_MODEL")
    settings = load_settings(_options(arguments, locate_model(named) if named else str(default_model_path(models))))
    # Before the default model is fetched, which takes a minute.
    check_ports(own_ports(settings))
    if not named:
        ensure_default_model(models, _progress)
    check_memory(settings.engine.model, settings.engine.args, available_memory())
    configure_logs("up")
    # It logs each request, and the frontend is asked four times a second while the engine loads.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        return asyncio.run(supervise(tiers(settings, os.environ), ready_line(settings)))
    except TierFailed as failure:
        raise CommandError(str(failure)) from failure


def ready_line(settings: UpSettings) -> str:
    """The line that says where the service is, with a command that works as it stands."""
    from services.cli.tiers import frontend_url

    url = frontend_url(settings)
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    # Small models ramble at other temperatures, until their context is full.
    options = {"temperature": 0, "max_tokens": 200}
    request = json.dumps({"model": settings.engine.model_name, "messages": messages, **options}, ensure_ascii=False)
    header = shlex.quote("Content-Type: application/json")
    # The shell puts the key in: this line goes to logs.
    key = ' -H "Authorization: Bearer $OMNI_API_KEY"' if settings.frontend.api_keys_file else ""
    return f"ready at {url} · try: curl {url}/v1/chat/completions -H {header}{key} -d {shlex.quote(request)}"


async def supervise(stages: Sequence[Sequence[Tier]], ready: str, patience: Patience | None = None) -> int:
    """Run tiers until SIGINT or SIGTERM.

    Args:
        stages: see `Supervisor`.
        ready: the line that is printed when all serve.
        patience: see there.

    Returns: 0 after the first signal, 130 after a second.

    Raises:
        TierFailed: one ended before it was ever ready; the others were ended.
    """
    from services.cli.supervisor import Supervisor

    supervisor = Supervisor(stages, lambda: print(ready, flush=True), _progress, patience)
    signals = 0

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            _progress("stopping; what runs is finished first, and a second signal ends everything at once")
            supervisor.stop()
        else:
            supervisor.kill()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    await supervisor.run()
    return 0 if signals < 2 else _FORCED


def _options(arguments: argparse.Namespace, model: str) -> UpOptions:
    from services.cli.up_settings import UpOptions

    return UpOptions(
        model,
        arguments.port,
        arguments.engine_port,
        arguments.engine_metrics_port,
        arguments.tokenizer_port,
        arguments.tokenizer_metrics_port,
        arguments.tokenizers,
        arguments.served_name,
        engine_args(arguments.engine_arg),
        arguments.filters_file,
        arguments.state_dir,
    )


def _progress(line: str) -> None:
    print(f"up: {line}", file=sys.stderr, flush=True)
