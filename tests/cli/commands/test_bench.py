"""`stream-omni bench`, as users run it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.cli.bench.sse_server import CHUNKED_HEAD, Exchange, chunked, sized, sse_server, token
from tests.cli.command_line import environment, stream_omni
from tests.cli.scripted_http import chat_server
from tests.cli.scripted_service import REPOSITORY


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str


async def start(*arguments: str) -> asyncio.subprocess.Process:
    """Start the command."""
    command = ["-m", "services.cli", "bench", *arguments]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=REPOSITORY, env=environment({}), stdout=pipe, stderr=pipe
    )


async def end_of(process: asyncio.subprocess.Process) -> Done:
    """Wait for its end."""
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), (err or b"").decode())


async def bench(*arguments: str) -> Done:
    """Run the command to its end."""
    return await end_of(await start(*arguments))


async def refuse(exchange: Exchange) -> None:
    """Answer that there is too much to do."""
    body = b'{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":null}}'
    await exchange.send(sized("429 Too Many Requests", body))


async def test_run_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    """The table is on standard output, the report in the file, and standard error stays empty."""
    report = tmp_path / "report.json"
    async with sse_server(lambda exchange: exchange.answer(20, 0.002)) as server:
        done = await bench(
            *("--url", server.url, "--model", "m", "--concurrency", "4", "--requests", "60", "--warmup", "2"),
            *("--pid", f"server={os.getpid()}", "--goodput", "ttft_ms=5000", "--json", str(report), "--quiet"),
        )
        sent = len(server.exchanges)
    assert (done.code, done.err, sent) == (0, "", 62)
    assert done.out.startswith(f"m at {server.url}, chat, ")
    assert "\nrequests    60 completed, 0 cancelled, 0 unfinished, 0 failed; " in done.out
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    assert found["requests"]["completed"] == 60
    assert found["tokens"]["completion"] == 1200
    assert found["goodput"]["share"] == 1.0
    assert found["ttft_ms"]["count"] == 60 and found["itl_ms"]["count"] == 1140
    assert found["itl_ms"]["p50"] >= 1.0
    assert found["cpu"]["processes"]["server"]["us_per_token"] > 0
    assert found["generator"]["us_per_token"] > 0


def test_model_is_the_servers_first() -> None:
    """Without a name, the server's list decides; usage without the prompt's tokens is read, too."""
    with chat_server("one", "two") as server:
        done = stream_omni("bench", "--url", f"{server.url}/v1", "--requests", "1", "--quiet")
        assert {chat["model"] for chat in server.chats} == {"one"}
    assert done.returncode == 0
    assert "\noutput      3 tokens, " in done.stdout


def test_server_with_a_key_and_an_own_authority(tmp_path: Path) -> None:
    """The key comes from the environment too, and HTTPS is spoken to a server whose authority is named."""
    authority = Authority(tmp_path)
    with chat_server("tiny", key="so-key", pair=authority.issue("server")) as server:
        load = ("bench", "--url", server.url, "--requests", "2", "--quiet")
        done = stream_omni(*load, "--tls-ca", str(authority.ca), OMNI_API_KEY="so-key")
        without_key = stream_omni(*load, "--tls-ca", str(authority.ca))
        untrusted = stream_omni(*load, "--api-key", "so-key")
    assert done.returncode == 0 and "\noutput      6 tokens, " in done.stdout
    assert without_key.returncode == 1 and "answered 401" in without_key.stderr
    assert untrusted.returncode == 1 and "certificate" in untrusted.stderr.lower()


def test_help_tells_what_is_measured() -> None:
    """The command is listed, and its help defines each figure of the table."""
    assert "\n    bench" in stream_omni("--help").stdout
    text = stream_omni("bench", "--help").stdout
    for figure in ("first token ", "between chunks ", "gap per token ", "end to end "):
        assert f"\n  {figure}" in text


async def test_terminal_shows_how_far_it_is() -> None:
    """On a terminal one line is rewritten each second, and gone at the end."""
    terminal, end = os.openpty()
    async with sse_server(lambda exchange: exchange.answer(30, 0.05)) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", "bench", "--url", server.url, "--model", "m", "--requests", "1"),
            cwd=REPOSITORY,
            env=environment({}),
            stdout=asyncio.subprocess.PIPE,
            stderr=end,
        )
        os.close(end)
        done = await end_of(process)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert done.code == 0
    assert "0 of 1 requests over, 1 running, 0 failed, " in shown
    assert shown.endswith("\r\x1b[K") and "\n" not in shown


async def test_every_request_failed_is_exit_code_1() -> None:
    """The table is printed with the errors, and the exit code tells."""
    async with sse_server(refuse) as server:
        done = await bench("--url", server.url, "--model", "m", "--requests", "3", "--quiet")
    assert done.code == 1
    assert "\n3 × HTTP 429 rate_limit_error: slow down\n" in done.out


async def test_some_requests_failed_is_exit_code_0() -> None:
    """A load that a server refuses in part is a result."""

    async def script(exchange: Exchange) -> None:
        await (refuse(exchange) if exchange.number == 1 else exchange.answer(1))

    async with sse_server(script) as server:
        done = await bench("--url", server.url, "--model", "m", "--requests", "3", "--quiet")
    assert done.code == 0
    assert "2 completed, 0 cancelled, 0 unfinished, 1 failed" in done.out


async def test_failed_warm_up_is_one_line() -> None:
    """When not even the warm-up gets an answer, nothing is measured."""
    async with sse_server(refuse) as server:
        done = await bench("--url", server.url, "--model", "m", "--warmup", "2")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "stream-omni: every request of the warm-up failed, the first with HTTP 429 rate_limit_error: slow down\n"
    )


def test_missing_package_is_one_line() -> None:
    """Where the frontend's packages are not installed, the command says which to install."""
    program = "import sys; sys.modules['httptools'] = None; from services.cli.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "bench"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment({}), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "stream-omni: bench needs httptools; install it with pip install 'stream-omni[frontend]'\n"


def test_nobody_listening_is_one_line() -> None:
    """A server that is not there is told before anything is sent, with or without a model's name."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for model in ([], ["--model", "m"]):
        done = stream_omni("bench", "--url", url, *model)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(f"stream-omni: no server answers at {url} (")


async def test_interrupt_tells_what_was_measured() -> None:
    """Ctrl-C ends the run with its table and the exit code of an interrupt."""
    streaming = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD)
        while True:
            await exchange.send(chunked(token()))
            streaming.set()
            await asyncio.sleep(0.01)

    async with sse_server(script) as server:
        process = await start("--url", server.url, "--model", "m", "--requests", "2", "--quiet")
        async with asyncio.timeout(30):
            await streaming.wait()
        await asyncio.sleep(0.2)
        process.send_signal(signal.SIGINT)
        done = await end_of(process)
    assert (done.code, done.err) == (130, "")
    assert "0 completed, 0 cancelled, 1 unfinished, 0 failed" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "localhost"], "'localhost' is not the URL of a server"),
        (["--trace", "missing.jsonl"], "the trace missing.jsonl cannot be read: No such file or directory"),
        (["--json", "missing/report.json"], "--json missing/report.json is in no directory that is there"),
        (["--pid", "x=4194305"], "there is no process 4194305 for --pid x"),
        (["--concurrency", "2", "--request-rate", "3"], "--request-rate and --concurrency do not go together"),
        (["--output-tokens", "0"], "argument --output-tokens: '0' is no length"),
    ],
)
def test_wrong_command_line_is_one_line(arguments: list[str], message: str) -> None:
    """It says what is wrong, and the exit code is 2."""
    done = stream_omni("bench", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("stream-omni: ") and message in done.stderr
