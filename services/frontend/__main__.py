"""`python -m services.frontend`: settings, logs, service."""

from __future__ import annotations

import asyncio
import sys

import structlog

from services.chassis.logs import configure_logs
from services.chassis.settings import SettingsError
from services.chassis.stop import run_until_stopped
from services.frontend.service import serve
from services.frontend.settings import FrontendSettings

log = structlog.get_logger(__name__)


def main() -> int:
    """Run the frontend until SIGINT or SIGTERM and return the exit code."""
    try:
        settings = FrontendSettings.load()
        configure_logs("frontend", settings.log_level)

        def on_listening(port: int) -> None:
            scheme = "http" if settings.tls_cert is None else "https"
            log.info("listening", url=f"{scheme}://{settings.host}:{port}")

        async def run(stopping: asyncio.Event) -> None:
            await serve(settings, stopping, on_listening)

        run_until_stopped(run)
    except SettingsError as error:
        print(f"frontend: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
