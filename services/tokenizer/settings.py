"""Settings of the tokenizer tier, from environment variables `OMNI_TOKENIZER_…`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from services.chassis.tls import GrpcTlsSettings
from services.tokenizer.output_parsers.selection import ReasoningParserName, ToolParserName


class TokenizerSettings(GrpcTlsSettings):
    """All settings; see each field."""

    model_config = SettingsConfigDict(env_prefix="OMNI_TOKENIZER_")

    engine: str = Field(default="127.0.0.1:50051", pattern=r"^.+:[0-9]{1,5}$")
    """Address of the engine, host:port."""
    engine_tls_ca: Path | None = None
    """PEM file of the authority that signed the engine's certificate; unset: the engine is spoken to in plain text."""
    engine_tls_cert: Path | None = None
    """PEM file of the certificate that the engine is shown, where it asks for one."""
    engine_tls_key: Path | None = None
    """PEM file of that certificate's key, not encrypted."""
    host: str = "127.0.0.1"
    """Address of the gRPC and the metrics port."""
    port: int = Field(default=50061, ge=0, le=65535)
    """gRPC port; 0 takes a free one."""
    metrics_port: int = Field(default=9111, ge=0, le=65535)
    """Port of `/metrics`; 0 takes a free one."""
    max_generations: int = Field(default=4096, ge=1)
    """Most choices under way at once; the next is refused."""
    drain_seconds: float = Field(default=30.0, ge=0, allow_inf_nan=False)
    """Time that running generations get when the service ends."""
    tool_parser: ToolParserName | None = None
    """Parser of tool calls; unset: by the model's files."""
    reasoning_parser: ReasoningParserName | None = None
    """Parser of reasoning; unset: by the model's files."""
    allow_control_tokens: bool = False
    """Control tokens that a chat's texts spell are taken as such, as vLLM's own server does; else they stay text."""
    filters_file: Path | None = None
    """TOML file of rules for what leaves; unset: everything does. Read again when it changes."""
    classifier: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """What judges the text that leaves, as MODULE:NAME of what makes a `Classifier` of a file; unset: nothing does."""
    classifier_file: Path | None = None
    """The file that it is made of."""
    classifier_seconds: float = Field(default=2.0, gt=0, allow_inf_nan=False)
    """Time in which each of its verdicts must come, else the answer ends with an error."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least level that is logged."""
