"""What the engine counts, and its text exposition under vLLM's and under SGLang's names.

The tally is neutral; only the two renderers know names. Names and labels: vLLM 0.32.0's and SGLang 0.5.23's `/metrics`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SECONDS_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)
TOKENS_BOUNDS = (1.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0)


@dataclass(slots=True)
class Histogram:
    """Counts per bound; the last place counts what exceeds all bounds."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


def _seconds() -> Histogram:
    return Histogram(SECONDS_BOUNDS)


def _tokens() -> Histogram:
    return Histogram(TOKENS_BOUNDS)


@dataclass(slots=True)
class Tally:
    """Everything counted since start. Token counts unless named otherwise."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    encoder_queries: int = 0
    encoder_hits: int = 0
    queue_rejections: int = 0
    aborted_requests: int = 0
    finished: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("stop", "length", "abort", "error", "repetition"), 0)
    )
    first_token_s: Histogram = field(default_factory=_seconds)
    inter_token_s: Histogram = field(default_factory=_seconds)
    whole_request_s: Histogram = field(default_factory=_seconds)
    queue_s: Histogram = field(default_factory=_seconds)
    request_prompt_tokens: Histogram = field(default_factory=_tokens)
    request_generation_tokens: Histogram = field(default_factory=_tokens)


@dataclass(frozen=True, slots=True)
class Gauges:
    """The moment's state that a scrape shows beside the tally."""

    model: str
    running: int
    waiting: int
    kv_usage: float
    used_tokens: int
    block_size: int
    kv_blocks: int
    max_model_len: int
    mm_queries: int
    mm_hits: int
    asleep: bool = False


class _Page:
    def __init__(self, prefix: str, labels: Mapping[str, str], created_s: float) -> None:
        self._prefix = prefix
        self._labels = dict(labels)
        self._created_s = created_s
        self._lines: list[str] = []

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self._head(name, "gauge")
        self._line(name, value, labels)

    def counter(self, name: str, value: float, label: str = "", per_label: Mapping[str, float] | None = None) -> None:
        """A counter, or one sample for each value of `label`."""
        self._head(f"{name}_total", "counter")
        series = [({}, value)] if per_label is None else [({label: key}, count) for key, count in per_label.items()]
        for labels, count in series:
            self._line(f"{name}_total", count, labels)
        self._head(f"{name}_created", "gauge")
        for labels, _ in series:
            self._line(f"{name}_created", self._created_s, labels)

    def histogram(self, name: str, histogram: Histogram) -> None:
        self._head(name, "histogram")
        running = 0
        for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts, strict=True):
            running += count
            self._line(f"{name}_bucket", running, {"le": bound})
        self._line(f"{name}_count", running, {})
        self._line(f"{name}_sum", histogram.total, {})
        self._head(f"{name}_created", "gauge")
        self._line(f"{name}_created", self._created_s, {})

    def process(self) -> None:
        """What a server of one process tells of it, and one of several does not."""
        name = "process_start_time_seconds"
        self._lines += [f"# HELP {name} Simulated.", f"# TYPE {name} gauge", f"{name} {self._created_s}"]

    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def _head(self, name: str, kind: str) -> None:
        full = f"{self._prefix}:{name}"
        self._lines += [f"# HELP {full} Simulated.", f"# TYPE {full} {kind}"]

    def _line(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        pairs = ",".join(f'{key}="{_escaped(entry)}"' for key, entry in {**self._labels, **labels}.items())
        self._lines.append(f"{self._prefix}:{name}{{{pairs}}} {float(value)}")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def render_vllm(tally: Tally, gauges: Gauges, created_s: float) -> str:
    """The page of `GET /metrics` in vLLM's names."""
    page = _Page("vllm", {"engine": "0", "model_name": gauges.model}, created_s)
    page.gauge("num_requests_running", gauges.running)
    page.gauge("num_requests_waiting", gauges.waiting)
    page.gauge("num_requests_waiting_by_reason", gauges.waiting, reason="capacity")
    page.gauge("kv_cache_usage_perc", gauges.kv_usage)
    page.gauge("engine_sleep_state", float(not gauges.asleep), sleep_state="awake")
    page.gauge(
        "cache_config_info",
        1,
        block_size=str(gauges.block_size),
        num_gpu_blocks=str(gauges.kv_blocks),
        kv_cache_size_tokens=str(gauges.kv_blocks * gauges.block_size),
        kv_cache_max_concurrency=str(gauges.kv_blocks * gauges.block_size / gauges.max_model_len),
        enable_prefix_caching="True",
        prefix_caching_hash_algo="sha256",
    )
    page.counter("prefix_cache_queries", tally.prefix_queries)
    page.counter("prefix_cache_hits", tally.prefix_hits)
    page.counter("external_prefix_cache_queries", 0)
    page.counter("external_prefix_cache_hits", 0)
    page.counter("mm_cache_queries", gauges.mm_queries)
    page.counter("mm_cache_hits", gauges.mm_hits)
    page.counter("prompt_tokens", tally.prompt_tokens)
    by_source = {
        "local_compute": tally.prefix_queries - tally.prefix_hits,
        "local_cache_hit": tally.prefix_hits,
        "external_kv_transfer": 0,
    }
    page.counter("prompt_tokens_by_source", 0, "source", by_source)
    page.counter("prompt_tokens_cached", tally.prefix_hits)
    page.counter("generation_tokens", tally.generation_tokens)
    page.counter("num_preemptions", 0)
    page.counter("request_success", 0, "finished_reason", tally.finished)
    rejections = {"max_num_queued_reqs": tally.queue_rejections, "max_num_queued_tokens": 0}
    page.counter("admission_rejections", 0, "reason", rejections)
    for name, histogram in _common_histograms(tally):
        page.histogram(name, histogram)
    page.histogram("request_queue_time_seconds", tally.queue_s)
    page.histogram("request_prompt_tokens", tally.request_prompt_tokens)
    page.histogram("request_generation_tokens", tally.request_generation_tokens)
    page.process()
    return page.text()


def render_sglang(tally: Tally, gauges: Gauges, created_s: float) -> str:
    """The page of `GET /metrics` in SGLang's names (server started with metrics on)."""
    page = _Page("sglang", {"model_name": gauges.model, "engine_type": "unified", "tp_rank": "0"}, created_s)
    capacity = gauges.kv_blocks * gauges.block_size
    page.gauge("num_running_reqs", gauges.running)
    page.gauge("num_queue_reqs", gauges.waiting)
    page.gauge("num_paused_reqs", 0)
    page.gauge("num_retracted_reqs", 0)
    page.gauge("token_usage", gauges.kv_usage)
    page.gauge("full_token_usage", gauges.kv_usage)
    page.gauge("num_used_tokens", gauges.used_tokens)
    page.gauge("kv_used_tokens", gauges.used_tokens)
    page.gauge("kv_available_tokens", capacity - gauges.used_tokens)
    page.gauge("max_total_num_tokens", capacity)
    page.gauge("page_size", gauges.block_size)
    page.gauge("num_pages", gauges.kv_blocks)
    page.gauge("context_len", gauges.max_model_len)
    page.gauge("cache_hit_rate", tally.prefix_hits / tally.prefix_queries if tally.prefix_queries else 0.0)
    page.counter("cached_tokens", 0, "cache_source", {"device": tally.prefix_hits, "host": 0, "storage": 0})
    page.counter("prompt_tokens", tally.prompt_tokens)
    page.counter("generation_tokens", tally.generation_tokens)
    page.counter("num_requests", sum(tally.finished.values()))
    page.counter("num_aborted_requests", tally.aborted_requests)
    for name, histogram in _common_histograms(tally):
        page.histogram(name, histogram)
    page.histogram("queue_time_seconds", tally.queue_s)
    return page.text()


def _common_histograms(tally: Tally) -> Iterable[tuple[str, Histogram]]:
    yield "time_to_first_token_seconds", tally.first_token_s
    yield "inter_token_latency_seconds", tally.inter_token_s
    yield "e2e_request_latency_seconds", tally.whole_request_s
