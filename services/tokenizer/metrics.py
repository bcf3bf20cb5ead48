"""The tokenizer tier's metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from services.chassis.drain import Drain
from services.chassis.light_metrics import LightCounter

_ENCODE_BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class TokenizerMetrics:
    """All metrics of the tier, in one registry."""

    def __init__(self, registry: CollectorRegistry, admission: Drain) -> None:
        self.cancelled = Counter(
            "streamomni:text_generations_cancelled", "Generations ended by their callers.", registry=registry
        )
        self.tokens = LightCounter("streamomni:text_tokens", "Tokens turned into text.", registry)
        self._prompt_tokens = Counter("streamomni:text_prompt_tokens", "Tokens of prompts.", registry=registry)
        self._encode = Histogram(
            "streamomni:text_encode_seconds",
            "Rendering and encoding a prompt, in seconds.",
            registry=registry,
            buckets=_ENCODE_BUCKETS,
        )
        running = Gauge("streamomni:text_generations_running", "Choices under way.", registry=registry)
        running.set_function(lambda: admission.active)

    def encoded(self, tokens: int, seconds: float) -> None:
        """A prompt became `tokens` ids in `seconds`."""
        self._prompt_tokens.inc(tokens)
        self._encode.observe(seconds)
