"""Structured logs: JSON lines, or coloured text on a terminal.

No prompt and no generated text is ever logged. Every line of a request carries
its `request_id`: bound by `structlog.contextvars` where one task serves one
request, by `log.bind` where one pass serves many.
"""

from __future__ import annotations

import logging
import sys

import structlog


def configure_logs(service: str, level: str = "INFO") -> None:
    """Send structlog's and the standard library's lines to standard error.

    Args:
        service: name that every line carries.
        level: least level shown: DEBUG, INFO, WARNING or ERROR.
    """
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _named(service),
    ]
    rendering: list[structlog.types.Processor]
    if sys.stderr.isatty():
        # The default traceback shows local variables, and those hold prompts.
        rendering = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    else:
        rendering = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *rendering],
        logger_factory=_Lines,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        cache_logger_on_first_use=True,
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [output]
    root.setLevel(level)


class _Lines:
    """Writes a logger's rendered lines. The standard library would take twice the time for it.

    Args:
        name: the logger's.
    """

    def __init__(self, name: str = "root") -> None:
        self.name = name

    def _write(self, line: str) -> None:
        # Where standard error is now, as tests put it elsewhere.
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    debug = info = warning = error = critical = _write


def _named(service: str) -> structlog.types.Processor:
    def add_service(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        event["service"] = service
        return event

    return add_service
