"""Settings of the engine tier, from environment variables `OMNI_ENGINE_…`."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from services.chassis.tls import GrpcTlsSettings


class EngineSettings(GrpcTlsSettings):
    """All settings; see each field."""

    model_config = SettingsConfigDict(env_prefix="OMNI_ENGINE_")

    model: str
    """Directory or hub id of the model."""
    served_name: str = ""
    """Name by which requests select it. Empty: the last part of `model`."""
    args: dict[str, Any] = Field(default_factory=dict)
    """vLLM's engine arguments by their own names, as one JSON object."""
    host: str = "127.0.0.1"
    """Address of the gRPC and the metrics port."""
    port: int = Field(default=50051, ge=0, le=65535)
    """gRPC port; 0 takes a free one."""
    metrics_port: int = Field(default=9101, ge=0, le=65535)
    """Port of `/metrics`; 0 takes a free one."""
    max_generations: int = Field(default=1024, ge=1)
    """Most choices that run and wait at once; the next is refused."""
    drain_seconds: float = Field(default=30.0, ge=0, allow_inf_nan=False)
    """Time that running generations get when the service ends."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least level that is logged."""

    @property
    def model_name(self) -> str:
        """Name by which requests select the model."""
        return self.served_name or PurePath(self.model).name
