from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from services.engine.metrics import EngineMetrics
from services.engine.port import Load

# Names that dashboards and load balancers read.
NAMES = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:e2e_request_latency_seconds_bucket",
}


def test_names_are_there_before_the_first_request() -> None:
    """All series of a model exist from the start, under vLLM's names and with the model's label."""
    registry = CollectorRegistry()
    EngineMetrics(registry).of_model("tiny")
    text = generate_latest(registry).decode()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert {line.partition("{")[0] for line in samples} >= NAMES
    assert all('model_name="tiny"' in line for line in samples)


def test_values_follow_what_is_told() -> None:
    """Gauges take the last load, counters add up, and the first token and later ones are timed apart."""
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry).of_model("tiny")
    metrics.set_load(Load(3, 2, 0.5))
    metrics.prefilled(100, 64)
    metrics.step(1, Load(1, 0, 0.25))
    metrics.first_token.observe(0.2)
    metrics.step(3, None)
    metrics.inter_token.observe(0.01)
    metrics.finished("stop", 1.5)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"model_name": "tiny", **labels})

    assert value("vllm:num_requests_running") == 1 and value("vllm:num_requests_waiting") == 0
    assert value("vllm:kv_cache_usage_perc") == 0.25
    assert value("vllm:prompt_tokens_total") == 100 and value("vllm:prompt_tokens_cached_total") == 64
    assert value("vllm:generation_tokens_total") == 4
    assert value("vllm:time_to_first_token_seconds_sum") == 0.2
    assert value("vllm:inter_token_latency_seconds_count") == 1
    assert value("vllm:request_success_total", finished_reason="stop") == 1
    assert value("vllm:request_success_total", finished_reason="length") == 0
    assert value("vllm:e2e_request_latency_seconds_sum") == 1.5
