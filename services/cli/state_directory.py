"""Where the command keeps what outlives it, such as the prompt's history."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where state lies, by ``OMNI_CLI_STATE_DIR``, then ``XDG_STATE_HOME``, then ``~/.local/state``; it may be missing.

    The rule: https://specifications.freedesktop.org/basedir-spec/latest/.
    """
    if chosen := environ.get("OMNI_CLI_STATE_DIR"):
        return Path(chosen).expanduser().absolute()
    state = environ.get("XDG_STATE_HOME", "")
    # The specification: a relative path is invalid and to be ignored.
    root = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return root / "stream-omni"
