"""Settings of the tokenizer tier, from environment variables `OMNI_TOKENIZER_…`."""

from __future__ import annotations

from pydantic_settings import SettingsConfigDict

from services.chassis.settings import ServiceSettings


class TokenizerSettings(ServiceSettings):
    """All settings; see each field."""

    model_config = SettingsConfigDict(env_prefix="OMNI_TOKENIZER_")

    engine: str = "127.0.0.1:50051"
    """Address of the engine, host:port."""
    host: str = "127.0.0.1"
    """Address of the gRPC and the metrics port."""
    port: int = 50061
    """gRPC port; 0 takes a free one."""
    metrics_port: int = 9111
    """Port of `/metrics`; 0 takes a free one."""
    max_generations: int = 4096
    """Most choices under way at once; the next is refused."""
    drain_seconds: float = 30.0
    """Time that running generations get when the service ends."""
    log_level: str = "INFO"
    """Least level that is logged."""
