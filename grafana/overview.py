"""The dashboard for whoever is called at night: is it well, what do clients feel, what do we cost, what is full."""

from __future__ import annotations

from grafana.builder import Dashboard, Kind, Panel, Query, Row
from grafana.promql import mean, own, per, quantile, rate, share, total

OUTCOMES = {
    "ok": "green",
    "rejected": "yellow",
    "shed": "orange",
    "backend_failed": "red",
    "backend_refused": "dark-yellow",
    "client_gone": "blue",
    "bug": "purple",
}
FAILED = 'outcome=~"backend_failed|bug"'
PRESSURE = f"({total('pool_busy')} + {total('pool_queued')})"
NO_STORE = "there is a shared store only where redis.url is set"

_WELL = Row(
    "Is it well?",
    (
        Panel(
            title="How much is asked?",
            action="Compare with an hour ago; nothing at all: look at the load balancer.",
            unit="reqps",
            queries=(Query(rate("requests_total"), "requests"),),
            kind=Kind.STAT,
            width=4,
            height=5,
        ),
        Panel(
            title="What share fails?",
            action="By our fault or a backend's. Look at errors by code below, then at the backends.",
            unit="percentunit",
            queries=(
                Query(share(f"({rate('requests_total', FAILED)} or vector(0))", rate("requests_total")), "failed"),
            ),
            kind=Kind.STAT,
            width=4,
            height=5,
            share=True,
            limit=0.001,
            runbook="fasterrorburn",
        ),
        Panel(
            title="Which backends are there?",
            action="Down: look at the backend's log; the dashboard Routing has each.",
            unit="none",
            queries=(
                Query(total("backend_up"), "up"),
                Query(f"count ({own('backend_up')})", "known"),
            ),
            kind=Kind.STAT,
            width=4,
            height=5,
            runbook="nohealthybackend",
        ),
        Panel(
            title="What share is saved?",
            action="Of image tokens. None: policies cap nothing (rules.max_pixels), or images are small.",
            unit="percentunit",
            queries=(
                Query(
                    "1 - "
                    + share(
                        rate("image_tokens_total", 'direction="sent"'), rate("image_tokens_total", 'direction="asked"')
                    ),
                    "saved",
                ),
            ),
            kind=Kind.STAT,
            width=4,
            height=5,
            share=True,
        ),
        Panel(
            title="How full is the pool?",
            action="Above 1 images wait: scale out.",
            unit="percentunit",
            queries=(Query(share(PRESSURE, total("pool_workers")), "busy and queued"),),
            kind=Kind.STAT,
            width=4,
            height=5,
            limit=0.9,
            runbook="poolsaturated",
        ),
        Panel(
            title="Which alerts fire?",
            action="Each has its page in the runbook.",
            unit="none",
            queries=(Query('count (ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
            kind=Kind.STAT,
            width=4,
            height=5,
            limit=1,
        ),
    ),
)

_REQUESTS = Row(
    "What happens to requests?",
    (
        Panel(
            title="How do requests end?",
            action="Rejected: the client's fault; shed: limits; backend_failed: see Routing; bug: report it.",
            unit="reqps",
            queries=(Query(rate("requests_total", by="outcome"), "{{outcome}}"),),
            stacked=True,
            colours=OUTCOMES,
        ),
        Panel(
            title="Why do requests fail?",
            action="docs/errors.md has every code.",
            unit="reqps",
            queries=(Query(rate("errors_total", by="code"), "{{code}}"),),
            stacked=True,
            quiet="no request has failed",
        ),
        Panel(
            title="Which APIs are used?",
            action="None.",
            unit="reqps",
            queries=(Query(rate("requests_total", by="dialect"), "{{dialect}}"),),
            stacked=True,
        ),
        Panel(
            title="How long until a stream begins?",
            action="Compare with the overhead below and the engines' time on Routing.",
            unit="s",
            queries=tuple(
                Query(quantile(of, "time_to_first_byte_seconds"), f"p{of * 100:g}") for of in (0.5, 0.95, 0.99)
            ),
            quiet="nobody has asked for a stream",
        ),
        Panel(
            title="How long does a request take?",
            action="Long answers take long: look at tokens on Tenants first.",
            unit="s",
            queries=tuple(
                Query(quantile(of, "request_duration_seconds"), f"p{of * 100:g}") for of in (0.5, 0.95, 0.99)
            ),
        ),
        Panel(
            title="What is in flight, and is one stuck?",
            action="An age beyond every deadline: find the request in the access log.",
            unit="none",
            queries=(
                Query(total("requests_inflight"), "in flight"),
                Query(f"max ({own('oldest_request_seconds')})", "oldest, in seconds"),
            ),
        ),
    ),
)

_COST = Row(
    "What do we cost?",
    (
        Panel(
            title="What do we add to a request, by its images?",
            action="Beyond 20 ms without images: look at the loop. With images: add workers, or look at the stages.",
            unit="s",
            queries=(
                Query(quantile(0.5, "overhead_seconds", by="images"), "p50, {{images}} images"),
                Query(quantile(0.99, "overhead_seconds", by="images"), "p99, {{images}} images"),
            ),
            runbook="overheadhigh",
        ),
        Panel(
            title="Where does a request's time go?",
            action="forward and relay are the engine's and the client's; reserve waits for budgets; the rest is ours.",
            unit="s",
            queries=(
                Query(
                    per(rate("stage_duration_seconds_sum", by="stage"), rate("requests_total")),
                    "{{stage}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Is our arithmetic of tokens right?",
            action="Off by more than rounding: run doctor against the backend; set the model's max_pixels.",
            unit="percentunit",
            queries=(Query(mean("estimate_ratio", by="family"), "{{family}}, actual over estimated"),),
            runbook="estimatedrift",
        ),
    ),
)

_FULL = Row(
    "What is full?",
    (
        Panel(
            title="Does something block the loop?",
            action="Report it, with the log of that time.",
            unit="s",
            queries=(Query(quantile(0.99, "loop_lag_seconds"), "p99 lag"),),
            runbook="loopstalled",
        ),
        Panel(
            title="Who waits for a budget or a backend?",
            action="By rule: raise that limit, or add backends where it is backend_kv.",
            unit="none",
            queries=(
                Query(total("budget_waiting_requests"), "waiting"),
                Query(rate("budget_refusals_total", by="rule"), "refused a second: {{rule}}"),
            ),
        ),
        Panel(
            title="How much memory is taken?",
            action="Workers grow: lower media.worker_memory_bytes. Bodies pile up: raise media.slab_bytes.",
            unit="bytes",
            queries=(
                Query("sum (process_resident_memory_bytes{" + 'job=~"$job",instance=~"$instance"' + "})", "gateway"),
                Query(total("pool_memory_bytes"), "image workers"),
                Query(total("body_memory_bytes"), "bodies"),
                Query(total("prepared_cache_bytes"), "prepared images"),
            ),
        ),
        Panel(
            title="How much CPU does the gateway's own process take?",
            action="Near 1 the loop is full: add a replica.",
            unit="percentunit",
            queries=(
                Query(
                    'rate (process_cpu_seconds_total{job=~"$job",instance=~"$instance"}[$__rate_interval])',
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            title="Does the shared store answer?",
            action="Degraded: each replica decides by its share. Look at the store, and at the log line store_away.",
            unit="none",
            queries=(
                Query(f"max ({own('state_degraded')})", "degraded"),
                Query(f"min ({own('state_replicas')})", "replicas known"),
                Query(rate("state_operations_total", 'result!="ok"', by="result"), "{{result}} a second"),
                Query(rate("reservations_expired_total"), "leases expired a second"),
            ),
            quiet=NO_STORE,
            runbook="budgetstoredegraded",
        ),
        Panel(
            title="What does the shared store cost?",
            action="take is on the path of requests: move the store nearer.",
            unit="s",
            queries=(Query(quantile(0.99, "state_seconds", by="operation"), "p99 {{operation}}"),),
            quiet=NO_STORE,
        ),
    ),
)

_PROCESS = Row(
    "What runs?",
    (
        Panel(
            title="Which versions run?",
            action="More than one outside of a rollout: finish it.",
            unit="none",
            queries=(Query(f"sum by (version, codec_backend) ({own('build_info')})", "replicas"),),
            kind=Kind.TABLE,
        ),
        Panel(
            title="Is configuration stale, is one leaving?",
            action="Failed: read the log line reload, which names every problem.",
            unit="none",
            queries=(
                Query(f"min ({own('config_last_reload_successful')})", "last reload taken over"),
                Query(
                    f"sum by (result) (increase({own('config_reloads_total')}[$__rate_interval]))",
                    "reloads: {{result}}",
                ),
                Query(total("draining"), "draining"),
            ),
            runbook="reloadfailed",
        ),
        Panel(
            title="Does anything stall, get lost, or steer engines?",
            action="Stalls: as above. Stripped: talk to the tenant. Lines or traces lost: see their collectors.",
            unit="none",
            queries=(
                Query(rate("loop_stalls_total"), "stalls of the loop a second"),
                Query(rate("stripped_fields_total"), "stripped fields a second"),
                Query(rate("unverified_total"), "answers without usage a second"),
                Query(rate("log_lines_dropped_total"), "log lines lost a second"),
                Query(rate("traced_requests_total", by="end"), "traced requests a second: {{end}}"),
            ),
            runbook="loglineslost",
            quiet="every answer tells its usage",
        ),
    ),
)

OVERVIEW = Dashboard(
    uid="vlmgw-overview",
    title="vlm-gateway: overview",
    about="Is it well, what do clients feel, what do we cost, what is full.",
    rows=(_WELL, _REQUESTS, _COST, _FULL, _PROCESS),
)
