from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.architecture.source_tree import REPOSITORY

# Configuring logs changes the whole process, so each case runs in one of its own.
PRELUDE = """
import logging
import structlog
from services.chassis.logs import configure_logs
"""


def lines_of(script: str) -> list[str]:
    """What a script writes to standard error; it must write nothing to standard output."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_lines_are_json_with_service_and_request(tmp_path: Path) -> None:
    """Off a terminal each line is one JSON object: event, level, logger, UTC time, service, and the request's id."""
    script = """
configure_logs("engine")
structlog.contextvars.bind_contextvars(request_id="r-1")
structlog.get_logger("car").info("started, ö", doors=4)
"""
    (line,) = map(json.loads, lines_of(script))
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "started, ö",
        "level": "info",
        "logger": "car",
        "service": "engine",
        "request_id": "r-1",
        "doors": 4,
    }


def test_the_standard_librarys_lines_look_alike() -> None:
    """Lines of libraries that log by the standard library are JSON with the same keys."""
    script = """
configure_logs("engine")
logging.getLogger("lib").warning("took %d s", 3)
"""
    (line,) = map(json.loads, lines_of(script))
    assert (line["event"], line["level"], line["logger"], line["service"]) == ("took 3 s", "warning", "lib", "engine")


def test_tracebacks_stay_in_their_line() -> None:
    """An exception is one line of JSON with the whole traceback in it."""
    script = """
configure_logs("engine")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger("car").exception("call failed")
    logging.getLogger("lib").exception("call failed")
"""
    for line in map(json.loads, lines_of(script)):
        assert "ZeroDivisionError" in line["exception"] and "Traceback" in line["exception"]


def test_level_bounds_both_sorts() -> None:
    """Lines below the level are not written, whoever logs them."""
    script = """
log = structlog.get_logger("early")
configure_logs("engine", "WARNING")
log.info("no")
log.warning("yes")
logging.getLogger("lib").info("no")
logging.getLogger("lib").error("yes")
"""
    assert [json.loads(line)["event"] for line in lines_of(script)] == ["yes", "yes"]


def test_no_json_on_a_terminal() -> None:
    """On a terminal lines are for people."""
    script = """
import os, pty, sys
master, terminal = pty.openpty()
os.dup2(terminal, 2)
configure_logs("engine")
structlog.get_logger("car").info("started", doors=4)
sys.stderr.flush()
text = os.read(master, 4096).decode()
assert "started" in text and "doors" in text and not text.startswith("{"), text
"""
    assert lines_of(script) == []
