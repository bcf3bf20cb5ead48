"""The engine tier's metrics, under the names that vLLM's dashboards read.

Names and meanings are those of vLLM's own server
(https://docs.vllm.ai/en/latest/usage/metrics/); times are taken in this tier.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from services.chassis.light_metrics import LightHistogram
from services.engine.port import Load

_SHORT_BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_LONG_BUCKETS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class EngineMetrics:
    """All metrics of the tier, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, ["model_name"], registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ["model_name", *labels], registry=registry)

        def histogram(name: str, text: str, bounds: tuple[float, ...]) -> LightHistogram:
            return LightHistogram(name, text, ["model_name"], bounds, registry)

        self.running = gauge("vllm:num_requests_running", "Requests that are scheduled.")
        self.waiting = gauge("vllm:num_requests_waiting", "Requests that wait to be scheduled.")
        self.kv_cache_usage = gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.")
        self.prompt_tokens = counter("vllm:prompt_tokens", "Prompt tokens processed.")
        self.cached_tokens = counter("vllm:prompt_tokens_cached", "Prompt tokens found in the prefix cache.")
        self.generation_tokens = counter("vllm:generation_tokens", "Tokens generated.")
        self.request_success = counter("vllm:request_success", "Choices that ended.", "finished_reason")
        self.cancelled = counter("streamomni:generations_cancelled", "Generations ended by their callers.")
        self.restarts = counter("streamomni:engine_restarts", "Times the engine was loaded again after it died.")
        self.first_token = histogram(
            "vllm:time_to_first_token_seconds", "From arrival to the first token, in seconds.", _LONG_BUCKETS
        )
        self.inter_token = histogram(
            "vllm:inter_token_latency_seconds", "Between two tokens of a choice, in seconds.", _SHORT_BUCKETS
        )
        self.end_to_end = histogram(
            "vllm:e2e_request_latency_seconds", "From arrival to the end of a choice, in seconds.", _LONG_BUCKETS
        )

    def of_model(self, name: str) -> ModelMetrics:
        """The metrics with this model's label."""
        return ModelMetrics(self, name)


class ModelMetrics:
    """The metrics of one model; label lookups are done once.

    `first_token` and `inter_token` are observed once a token, so directly.
    """

    def __init__(self, metrics: EngineMetrics, model: str) -> None:
        self._load = Load(0, 0, 0.0)
        # Read when they are scraped, not set at each step.
        metrics.running.labels(model).set_function(lambda: self._load.running)
        metrics.waiting.labels(model).set_function(lambda: self._load.waiting)
        metrics.kv_cache_usage.labels(model).set_function(lambda: self._load.kv_cache_usage)
        self._prompt_tokens = metrics.prompt_tokens.labels(model)
        self._cached_tokens = metrics.cached_tokens.labels(model)
        self._generation_tokens = metrics.generation_tokens.labels(model)
        self._success = {reason: metrics.request_success.labels(model, reason) for reason in ("stop", "length")}
        self.first_token = metrics.first_token.labels(model)
        self.inter_token = metrics.inter_token.labels(model)
        self._end_to_end = metrics.end_to_end.labels(model)
        self.cancelled = metrics.cancelled.labels(model)
        self.restarts = metrics.restarts.labels(model)

    def set_load(self, load: Load) -> None:
        """Take over the engine's load."""
        self._load = load

    def prefilled(self, prompt_tokens: int, cached_tokens: int) -> None:
        """A prompt is computed."""
        self._prompt_tokens.inc(prompt_tokens)
        self._cached_tokens.inc(cached_tokens)

    def step(self, tokens: int, load: Load | None) -> None:
        """A step gave all choices this many tokens together."""
        if tokens:
            self._generation_tokens.inc(tokens)
        if load is not None:
            self.set_load(load)

    def finished(self, reason: str, seconds: float) -> None:
        """A choice ended, `seconds` after its arrival."""
        self._success[reason].inc()
        self._end_to_end.observe(seconds)
