"""From options and environment to the tiers' settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.chassis.settings import SettingsError
from services.cli.up_settings import UpOptions, load_settings, own_ports


@pytest.fixture(autouse=True)
def environment(tmp_path: Path) -> Iterator[None]:
    """Give the process its own environment back, which loading the settings changes."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("OMNI_"):
            del os.environ[name]
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    yield
    os.environ.clear()
    os.environ.update(before)


def test_defaults_are_the_tiers_own() -> None:
    """Without options the documented ports are opened, each on the loopback address."""
    settings = load_settings(UpOptions("models/tiny"))
    assert settings.engine.model_name == "tiny"
    ports = own_ports(settings)
    assert [(own.number, own.option) for own in ports] == [
        (8000, "--port"),
        (50051, "--engine-port"),
        (9101, "--engine-metrics-port"),
        (50061, "--tokenizer-port"),
        (9111, "--tokenizer-metrics-port"),
    ]
    assert {own.host for own in ports} == {"127.0.0.1"}


def test_each_tokenizer_takes_the_next_ports() -> None:
    """Process i takes its port + i, gRPC and metrics alike."""
    ports = own_ports(load_settings(UpOptions("tiny", tokenizers=3)))
    assert [own.number for own in ports if own.option == "--tokenizer-port"] == [50061, 50062, 50063]
    assert [own.number for own in ports if own.option == "--tokenizer-metrics-port"] == [9111, 9112, 9113]


def test_options_go_over_the_environment() -> None:
    """An option wins over a variable, a variable over the default, and engine arguments are joined one by one."""
    os.environ |= {"OMNI_FRONTEND_PORT": "81", "OMNI_ENGINE_PORT": "82"}
    os.environ["OMNI_ENGINE_ARGS"] = '{"dtype": "half", "seed": 1}'
    settings = load_settings(UpOptions("tiny", port=91, served_name="mine", engine_args={"seed": 2}))
    assert (settings.frontend.port, settings.engine.port) == (91, 82)
    assert settings.engine.model_name == "mine"
    assert settings.engine.args == {"dtype": "half", "seed": 2}


@pytest.mark.parametrize("name", ["OMNI_TOKENIZER_ENGINE", "OMNI_FRONTEND_TOKENIZERS"])
def test_links_cannot_be_chosen(name: str) -> None:
    """What up decides itself is refused, not passed over."""
    os.environ[name] = "10.0.0.1:50051"
    with pytest.raises(SettingsError, match=f"{name} cannot be chosen here"):
        load_settings(UpOptions("tiny"))


@pytest.mark.parametrize(
    "name", ["OMNI_ENGINE_TLS_CERT", "OMNI_TOKENIZER_ENGINE_TLS_CA", "OMNI_FRONTEND_TLS_KEY", "OMNI_TOKENIZER_TLS_CERT"]
)
def test_tls_is_for_tiers_of_their_own(name: str) -> None:
    """TLS settings, which up would not use, are refused, not passed over."""
    os.environ[name] = "x.pem"
    with pytest.raises(SettingsError, match=f"{name} cannot be set here"):
        load_settings(UpOptions("tiny"))


def test_wrong_filters_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A filters file that the tokenizers would refuse is refused here; a good one is theirs."""
    path = tmp_path / "filters.toml"
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(UpOptions("tiny", filters_file=str(path)))
    path.write_text("[[rule]]\nname = 'r'\naction = 'mask'\nwords = ['a']\n")
    assert load_settings(UpOptions("tiny", filters_file=str(path))).tokenizer.filters_file == path


def test_wrong_keys_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A file of API keys that the frontend would refuse is refused here, long before the frontend's turn."""
    os.environ["OMNI_FRONTEND_API_KEYS_FILE"] = str(tmp_path / "keys")
    with pytest.raises(SettingsError, match="keys cannot be read"):
        load_settings(UpOptions("tiny"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (UpOptions("tiny", port=50051), "port 50051 is taken twice, by --port and --engine-port"),
        (UpOptions("tiny", tokenizers=2, tokenizer_port=8000, port=8001), "8001 is taken twice, by --port and"),
        (UpOptions("tiny", tokenizers=2, tokenizer_port=65535), "port 65536 cannot be used; give --tokenizer-port"),
    ],
)
def test_impossible_ports_are_refused(options: UpOptions, message: str) -> None:
    """Two tiers cannot share a port, and none lies beyond the range."""
    with pytest.raises(SettingsError, match=message):
        load_settings(options)


def test_unknown_variable_is_refused() -> None:
    """A misspelt variable of any tier is told before anything is started."""
    os.environ["OMNI_TOKENIZER_PROT"] = "1"
    with pytest.raises(SettingsError, match="unknown setting OMNI_TOKENIZER_PROT"):
        load_settings(UpOptions("tiny"))


def test_a_broken_preset_is_told_at_once(tmp_path: Path) -> None:
    """A broken preset is told before anything is started."""
    (tmp_path / "poem.toml").write_text("title = 1")
    os.environ["OMNI_FRONTEND_PRESETS_DIR"] = str(tmp_path)
    with pytest.raises(SettingsError, match=r"poem\.toml is wrong"):
        load_settings(UpOptions("tiny"))


def test_sessions_are_kept_with_the_user_s_state(tmp_path: Path) -> None:
    """Without an option sessions lie in the user's directory for state, which is the user's alone."""
    settings = load_settings(UpOptions("tiny"))
    state = tmp_path / "state" / "stream-omni"
    assert settings.frontend.state_dir == state
    assert (state / "sessions.db").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700


def test_state_directory_can_be_chosen(tmp_path: Path) -> None:
    """An option goes over the variable, and the variable over the default."""
    os.environ["OMNI_FRONTEND_STATE_DIR"] = str(tmp_path / "variable")
    assert load_settings(UpOptions("tiny")).frontend.state_dir == tmp_path / "variable"
    chosen = load_settings(UpOptions("tiny", state_dir=str(tmp_path / "option")))
    assert chosen.frontend.state_dir == tmp_path / "option"


def test_unusable_database_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A directory that cannot be made, a file that is no database, and a URL of something else are refused at once."""
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(SettingsError, match=r"sessions\.db cannot be opened: .*; choose another directory"):
        load_settings(UpOptions("tiny", state_dir=str(tmp_path / "file")))
    (tmp_path / "sessions.db").write_text("no database, but longer than its head would be" * 10)
    with pytest.raises(SettingsError, match="cannot be used: file is not a database"):
        load_settings(UpOptions("tiny", state_dir=str(tmp_path)))
    os.environ["OMNI_FRONTEND_SESSIONS_URL"] = "redis://user:secret@localhost"
    with pytest.raises(SettingsError, match="must be sqlite:///PATH or postgresql://") as refused:
        load_settings(UpOptions("tiny"))
    assert "secret" not in str(refused.value)
    os.environ["OMNI_FRONTEND_SESSIONS_URL"] = "postgresql://user:secret@127.0.0.1:1/none"
    with pytest.raises(SettingsError, match="cannot be used: connection") as refused:
        load_settings(UpOptions("tiny"))
    assert "secret" not in str(refused.value)
