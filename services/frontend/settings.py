"""The frontend's settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from services.chassis.settings import ServiceSettings


class FrontendSettings(ServiceSettings):
    """Environment variables `OMNI_FRONTEND_…`."""

    model_config = SettingsConfigDict(env_prefix="OMNI_FRONTEND_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    # 0 takes any free port.
    port: int = Field(default=8000, ge=0, le=65535)
    # Addresses of the text services, `host:port` each: a JSON list or comma-separated.
    tokenizers: Annotated[tuple[str, ...], NoDecode] = Field(default=("127.0.0.1:50061",), min_length=1)
    # File of accepted keys, one a line; comments begin with `#`, changes are taken over. Unset: no key is needed.
    api_keys_file: Path | None = None
    # Directory of presets, NAME.toml each, which add to those that come along or replace them; changes are taken over.
    presets_dir: Path | None = None
    # Directory of what outlives the service: sessions, in `sessions.db`. Unset, as is the next: no sessions are kept.
    state_dir: Path | None = None
    # The sessions' database: sqlite:////PATH, or postgresql://USER:PASSWORD@HOST/DATABASE for several frontends.
    sessions_url: SecretStr | None = None
    # PEM files of the HTTP port's certificate, with its chain, and of its key. Unset: plain HTTP.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    # PEM file of the authority that signed the text services' certificates. Unset: plain text.
    tokenizers_tls_ca: Path | None = None
    # PEM files of the certificate, and of its key, that they are shown where they ask for one.
    tokenizers_tls_cert: Path | None = None
    tokenizers_tls_key: Path | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    # Largest request body.
    body_limit_bytes: int = Field(default=20 * 1024 * 1024, ge=1024)
    # All bodies that are being read and parsed at one time, together.
    body_budget_bytes: int = Field(default=512 * 1024 * 1024, ge=1024)
    # Largest request line with headers.
    header_limit_bytes: int = Field(default=128 * 1024, ge=1024)
    # Time for a request's headers to arrive whole.
    header_timeout_s: float = Field(default=15, gt=0)
    # Longest pause within a request's body.
    body_timeout_s: float = Field(default=30, gt=0)
    # A reader that takes nothing for this long has its connection closed.
    write_timeout_s: float = Field(default=30, gt=0)
    # An idle connection is kept for this long.
    keep_alive_s: int = Field(default=75, ge=1)
    # Longest generation. Unset: no limit.
    request_timeout_s: float | None = Field(default=None, gt=0)
    # A stream that has nothing to send by then sends its headers and a comment.
    first_byte_s: float = Field(default=10, gt=0)
    # Time between comments on a stream that has nothing to send.
    comment_interval_s: float = Field(default=15, gt=0)
    # A resumable stream is kept for this long after its last reader left, and after its end.
    resume_seconds: float = Field(default=60, gt=0)
    # The kept events of all resumable streams, together; each stream keeps at most 1 MiB.
    resume_budget_bytes: int = Field(default=256 * 1024 * 1024, ge=1024)
    # Most generations at once; the next is refused.
    max_requests: int = Field(default=4096, ge=1)
    # Time that running generations get to end when the service stops.
    drain_seconds: float = Field(default=30, ge=0)

    @field_validator("tokenizers", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("["):
            return json.loads(value)
        return [part.strip() for part in value.split(",") if part.strip()]

    @field_validator("tokenizers")
    @classmethod
    def _check(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise ValueError(f"{address!r} is not an address of the form host:port")
        if len(set(value)) != len(value):
            raise ValueError("an address is named twice")
        return value
