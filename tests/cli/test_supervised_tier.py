"""One tier, as a real process: started again when it dies, killed when it does not end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cli.scripted_service import Service, is_alive, service, wait_until

RESTART = "tier ended and is started again"


def wait_until_restarted(up: Service, times: int) -> None:
    """Wait until the tiers served again that often."""
    wait_until(lambda: len(up.logged("tier serves again")) == times)


def test_killed_tier_is_started_again_with_a_logged_reason(tmp_path: Path) -> None:
    """The tier that was killed serves again, the other is left alone; the log tells which, why and how often."""
    with service(tmp_path, {"engine": [], "frontend": []}) as up:
        up.until_ready()
        os.kill(up.pids("frontend")[0], signal.SIGKILL)
        wait_until(lambda: up.logged("tier serves again"))
        assert len(up.pids("frontend")) == 2
        assert len(up.pids("engine")) == 1
        (line,) = up.logged(RESTART)
        assert (line["tier"], line["reason"], line["restarts"], line["pause_seconds"]) == (
            "frontend",
            "SIGKILL",
            1,
            0.05,
        )


def test_pauses_grow_and_the_last_one_stays(tmp_path: Path) -> None:
    """Each restart is counted and waits longer, up to the longest pause."""
    with service(tmp_path, {"engine": []}) as up:
        up.until_ready()
        for restarts in range(1, 5):
            os.kill(up.pids("engine")[-1], signal.SIGKILL)
            wait_until_restarted(up, restarts)
        lines = up.logged(RESTART)
        assert [line["pause_seconds"] for line in lines] == [0.05, 0.2, 0.4, 0.4]
        assert [line["restarts"] for line in lines] == [1, 2, 3, 4]


def test_count_begins_anew_after_a_healthy_time(tmp_path: Path) -> None:
    """A tier that served for long enough begins with the first pause again."""
    with service(tmp_path, {"engine": []}, {"healthy": 0.0}) as up:
        up.until_ready()
        for restarts in range(1, 3):
            os.kill(up.pids("engine")[-1], signal.SIGKILL)
            wait_until_restarted(up, restarts)
        assert [line["restarts"] for line in up.logged(RESTART)] == [1, 1]


def test_clean_exit_without_being_asked_is_a_failure(tmp_path: Path) -> None:
    """A tier that ends by itself, even with exit code 0, is started again."""
    with service(tmp_path, {"engine": []}) as up:
        up.until_ready()
        os.kill(up.pids("engine")[0], signal.SIGTERM)
        wait_until(lambda: up.logged("tier serves again"))
        assert [line["reason"] for line in up.logged(RESTART)] == ["exit code 0"]


def test_tier_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    """After its drain time it is killed with all that it started, the log says so, and the exit code is still 0."""
    with service(tmp_path, {"engine": ["stubborn", "parent"]}, {"end": 0.2}) as up:
        up.until_ready()
        up.process.send_signal(signal.SIGTERM)
        assert up.end() == 0
        (line,) = up.logged("tier killed: it did not end in time")
        assert (line["tier"], line["seconds"]) == ("engine", 1.2)
        assert len(up.all_pids()) == 2
        assert not [pid for pid in up.all_pids() if is_alive(pid)]


def test_stop_does_not_wait_for_a_pause(tmp_path: Path) -> None:
    """A signal that comes while a restart is waited for ends the wait."""
    with service(tmp_path, {"engine": []}, {"pauses": [1000.0]}) as up:
        up.until_ready()
        os.kill(up.pids("engine")[0], signal.SIGKILL)
        wait_until(lambda: up.logged(RESTART))
        up.process.send_signal(signal.SIGTERM)
        assert up.end() == 0
        assert len(up.pids("engine")) == 1


def test_tier_leads_a_session_of_its_own(tmp_path: Path) -> None:
    """Ctrl-C in the terminal, which goes to the foreground group, does not reach tiers."""
    with service(tmp_path, {"engine": []}) as up:
        up.until_ready()
        (pid,) = up.pids("engine")
        assert os.getsid(pid) == os.getpgid(pid) == pid
