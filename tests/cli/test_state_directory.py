"""Where state is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.state_directory import state_directory


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"OMNI_CLI_STATE_DIR": "/a", "XDG_STATE_HOME": "/b"}, Path("/a")),
        ({"XDG_STATE_HOME": "/b"}, Path("/b/stream-omni")),
        ({"XDG_STATE_HOME": "relative"}, Path.home() / ".local/state/stream-omni"),
        ({}, Path.home() / ".local/state/stream-omni"),
    ],
)
def test_place_follows_the_environment(environ: dict[str, str], expected: Path) -> None:
    """The own variable goes first, then the desktop's, then the home directory; a relative path is passed over."""
    assert state_directory(environ) == expected
