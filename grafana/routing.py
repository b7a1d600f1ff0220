"""The dashboard of the fleet: every backend, why it was chosen, whether images go where they are known."""

from __future__ import annotations

from grafana.builder import Dashboard, Kind, Panel, Query, Row
from grafana.promql import ENGINE, own, quantile, rate, share, total

_CHOSEN = 'backend=~"$backend"'
_NO_EVENTS = "no backend publishes KV events that are listened to"
_NO_LEGS = "no backend is an encoder or a prefill"
_NO_VLLM = "Prometheus does not scrape a vLLM"
_NO_SGLANG = "Prometheus does not scrape an SGLang"
_NO_TROUBLE = "no request met trouble on its way"

_FLEET = Row(
    "Which backends are there?",
    (
        Panel(
            title="How does each backend stand?",
            action="Down: its log. Old telemetry: its /metrics cannot be read.",
            unit="none",
            queries=tuple(
                Query(f"max by (backend) ({own(name, _CHOSEN)})", column)
                for name, column in (
                    ("backend_up", "up"),
                    ("backend_inflight", "our requests"),
                    ("backend_queued", "waiting there"),
                    ("backend_kv_ratio", "KV use"),
                    ("backend_telemetry_age_seconds", "telemetry age, s"),
                )
            ),
            kind=Kind.TABLE,
            width=16,
        ),
        Panel(
            title="How do requests end, by backend?",
            action="One worse than the others: look at it. All: look at what they share.",
            unit="reqps",
            queries=(Query(rate("upstream_requests_total", _CHOSEN, by="backend, result"), "{{backend}} {{result}}"),),
            stacked=True,
        ),
        Panel(
            title="Which backends are up?",
            action="Look at the backend's log.",
            unit="none",
            queries=(Query(f"min by (backend) ({own('backend_up', _CHOSEN)})", "{{backend}}"),),
            runbook="nohealthybackend",
        ),
        Panel(
            title="How is load spread?",
            action="One far above its like: see why it is chosen, below.",
            unit="none",
            queries=(
                Query(total("backend_inflight", _CHOSEN, by="backend"), "{{backend}}, ours in flight"),
                Query(f"max by (backend) ({own('backend_queued', _CHOSEN)})", "{{backend}}, waiting in the engine"),
            ),
        ),
        Panel(
            title="How full are KV caches?",
            action="Add engines, or lower kv_tokens_in_flight.",
            unit="percentunit",
            queries=(Query(f"max by (backend) ({own('backend_kv_ratio', _CHOSEN)})", "{{backend}}"),),
            share=True,
        ),
        Panel(
            title="How long do engines take to their first byte?",
            action="Compare with the time to the first byte on Overview: the difference is ours.",
            unit="s",
            queries=(
                Query(quantile(0.5, "upstream_ttft_seconds", by="engine"), "p50 {{engine}}"),
                Query(quantile(0.95, "upstream_ttft_seconds", by="engine"), "p95 {{engine}}"),
            ),
        ),
        Panel(
            title="Is routing blind?",
            action="Look at the backend's /metrics from where the gateway runs.",
            unit="s",
            queries=(Query(f"max by (backend) ({own('backend_telemetry_age_seconds', _CHOSEN)})", "{{backend}}"),),
            runbook="telemetrystale",
        ),
        Panel(
            title="Does the fleet hold still?",
            action="Look at what starts and stops the engines, and at the log line source_failed.",
            unit="none",
            queries=(
                Query(f"sum by (change) (increase({own('backends_changed_total')}[$__rate_interval]))", "{{change}}"),
                Query(f"min by (source) ({own('backend_source_ok')})", "source {{source}} answers"),
                Query(f"max by (source) ({own('backend_source_backends')})", "source {{source}}, backends"),
                Query(rate("backend_source_failures_total", by="source"), "source {{source}}, failures a second"),
            ),
            quiet="backends stand in the configuration: no source finds them",
            runbook="backendsourcefailing",
        ),
    ),
)

_DECISIONS = Row(
    "Why there?",
    (
        Panel(
            title="Is traffic affine or balanced?",
            action="None: load wins over affinity where waiting costs more than computing again.",
            unit="reqps",
            queries=(Query(rate("route_decisions_total", by="reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            title="Do images go where they are known?",
            action="Compare with the engines' own hits beside it: much lower there means that caches are too small.",
            unit="percentunit",
            queries=(
                Query(
                    share(rate("affinity_hits_total"), rate("affinity_queries_total")),
                    "to a backend that has seen them",
                ),
            ),
            share=True,
        ),
        Panel(
            title="Do engines find them in their caches?",
            action="Raise --mm-processor-cache-gb, or the KV cache.",
            unit="percentunit",
            queries=(
                Query(
                    f"sum (rate(vllm:mm_cache_hits_total{{{ENGINE}}}[$__rate_interval]))"
                    f" / (sum (rate(vllm:mm_cache_queries_total{{{ENGINE}}}[$__rate_interval])) > 0)",
                    "images (multimodal cache)",
                ),
                Query(
                    f"sum (rate(vllm:prefix_cache_hits_total{{{ENGINE}}}[$__rate_interval]))"
                    f" / (sum (rate(vllm:prefix_cache_queries_total{{{ENGINE}}}[$__rate_interval])) > 0)",
                    "prompt tokens (prefix cache)",
                ),
            ),
            share=True,
            quiet=_NO_VLLM,
        ),
        Panel(
            title="How much do engines say is running and waiting?",
            action="Much waits: add engines.",
            unit="none",
            queries=(
                Query(f"sum by (instance) (vllm:num_requests_running{{{ENGINE}}})", "{{instance}} runs"),
                Query(f"sum by (instance) (vllm:num_requests_waiting{{{ENGINE}}})", "{{instance}} waits"),
                Query(f"sum by (instance) (sglang:num_running_reqs{{{ENGINE}}})", "{{instance}} runs"),
                Query(f"sum by (instance) (sglang:num_queue_reqs{{{ENGINE}}})", "{{instance}} waits"),
            ),
            quiet=f"{_NO_VLLM}, or {_NO_SGLANG}",
        ),
        Panel(
            title="Do backends hold what they published?",
            action="more or less all the time: compare prefix_hash, kv_hash_seed and the tokenizer with the engine's.",
            unit="reqps",
            queries=(Query(rate("exact_prefixes_total", by="result"), "{{result}}"),),
            quiet=_NO_EVENTS,
        ),
        Panel(
            title="Do replicas tell each other of images?",
            action="Look at the log line store_away of store hints.",
            unit="ops",
            queries=(Query(rate("image_hints_total", by="direction"), "{{direction}}"),),
            quiet="there is one replica, or no Redis",
        ),
    ),
)

_TROUBLE = Row(
    "What goes wrong on the way?",
    (
        Panel(
            title="What is sent again, and why?",
            action="Look at the backend that refuses; cache_miss: its multimodal cache is smaller than believed.",
            unit="ops",
            queries=(Query(rate("upstream_retries_total", by="reason"), "{{reason}}"),),
            stacked=True,
            quiet=_NO_TROUBLE,
        ),
        Panel(
            title="Is there nobody left to go to?",
            action="Add backends; budget: see retries beside it, and retry_ratio.",
            unit="ops",
            queries=(
                Query(rate("upstream_stranded_total", by="reason"), "not taken: {{reason}}"),
                Query(rate("upstream_cut_total"), "cut: hung on leaving"),
            ),
            quiet="no request was stranded",
        ),
        Panel(
            title="Which backend is an outlier?",
            action="Look at the backend.",
            unit="none",
            queries=(
                Query(
                    f"sum by (backend, reason) (increase({own('backend_ejections_total', _CHOSEN)}[$__rate_interval]))",
                    "{{backend}} {{reason}}",
                ),
            ),
            quiet="no backend was ever ejected",
            runbook="backendflapping",
        ),
        Panel(
            title="Does a backend lose connections?",
            action="Open: look at the backends that are not up, and at the network before them.",
            unit="none",
            queries=(Query(total("breaker_backends", by="state"), "{{state}}"),),
            runbook="backendflapping",
        ),
        Panel(
            title="Do encoders and prefills help?",
            action="Look at the helper's log where legs fail or requests go whole.",
            unit="ops",
            queries=(Query(rate("legs_total", by="role, end"), "{{role}} {{end}}"),),
            quiet=_NO_LEGS,
        ),
    ),
)

_EVENTS = Row(
    "Is routing by prefix exact?",
    (
        Panel(
            title="Who publishes KV events, and is all of it known?",
            action="behind: see gaps beside it, and whether event and replay ports can be reached.",
            unit="none",
            queries=(Query(total("kv_event_backends", by="state"), "{{state}}"),),
            quiet=_NO_EVENTS,
        ),
        Panel(
            title="Do events come whole?",
            action="Gaps: look at the loop. Unanswered replays: set replay_endpoint at the engine, and open its port.",
            unit="ops",
            queries=(
                Query(rate("kv_events_total", by="result"), "{{result}}"),
                Query(rate("kv_event_gaps_total"), "gaps"),
                Query(rate("kv_event_replays_total", by="result"), "replays {{result}}"),
                Query(rate("kv_event_restarts_total"), "publishers that began anew"),
            ),
            quiet=_NO_EVENTS,
        ),
        Panel(
            title="How much is known to be held?",
            action="Compare upstream.kv_events_blocks.",
            unit="none",
            queries=(Query(total("kv_blocks"), "blocks"), Query(total("kv_index_bytes"), "bytes of the index")),
            quiet=_NO_EVENTS,
        ),
    ),
)

ROUTING = Dashboard(
    uid="vlmgw-routing",
    title="vlm-gateway: routing and backends",
    about="Every backend, why it was chosen, whether images go where they are known.",
    rows=(_FLEET, _DECISIONS, _TROUBLE, _EVENTS),
    variables=(
        ("backend", 'label_values(vlmgw_backend_up{job=~"$job",instance=~"$instance"}, backend)'),
        ("engines", 'label_values({__name__=~"vllm:num_requests_running|sglang:num_running_reqs"}, job)'),
    ),
)
