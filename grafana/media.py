"""The dashboard of the image pipeline: sources, what is done to images, workers, caches."""

from __future__ import annotations

from grafana.builder import Dashboard, Kind, Panel, Query, Row
from grafana.overview import PRESSURE
from grafana.promql import mean, own, quantile, rate, share, total

_NO_FETCH = "no request names a remote image, or fetch.enabled is off"
_NO_CLIPS = "no request has a video or a sound"

_SAVED = Row(
    "What is saved?",
    (
        Panel(
            title="How many image tokens are asked for, and sent?",
            action="Nothing saved: a cap in rules.max_pixels saves tokens.",
            unit="cps",
            queries=(Query(rate("image_tokens_total", by="direction"), "{{direction}}"),),
        ),
        Panel(
            title="How many bytes come, and go on?",
            action="None.",
            unit="Bps",
            queries=(Query(rate("image_bytes_total", by="direction"), "{{direction}}"),),
        ),
        Panel(
            title="How many pixels come, and go on?",
            action="None.",
            unit="cps",
            queries=(Query(rate("image_pixels_total", by="direction"), "{{direction}}"),),
        ),
    ),
)

_DONE = Row(
    "What is done to images?",
    (
        Panel(
            title="What do we do to images?",
            action="None.",
            unit="ops",
            queries=(Query(rate("images_total", by="action"), "{{action}}"),),
            stacked=True,
        ),
        Panel(
            title="Why are images not passed untouched?",
            action="Tell clients to send conforming images: it saves them the upload and us the work.",
            unit="ops",
            queries=(Query(rate("image_changes_total", by="change"), "{{change}}"),),
            stacked=True,
            quiet="every image conforms",
        ),
        Panel(
            title="How many images need no bytes at all?",
            action="Many missed: raise --mm-processor-cache-gb at vLLM, or set takes_ids: false.",
            unit="ops",
            queries=(Query(rate("image_ids_total", by="action"), "{{action}}"),),
            stacked=True,
            quiet="bytes_once is off, or no backend takes ids",
        ),
        Panel(
            title="Are images counted as engines count them?",
            action="Run doctor against the backend; set the model's max_pixels.",
            unit="ops",
            queries=(
                Query(rate("image_token_drift_total", by="family"), "images: {{family}}"),
                Query(rate("video_token_drift_total"), "videos"),
            ),
            runbook="estimatedrift",
        ),
        Panel(
            title="Are videos and sounds sampled, or passed as files?",
            action="The rule `video` of policies.",
            unit="ops",
            queries=(Query(rate("clips_total", by="kind, action"), "{{kind}} {{action}}"),),
            quiet=_NO_CLIPS,
        ),
        Panel(
            title="How heavy are videos and sounds?",
            action="Lower max_video_bytes.",
            unit="Bps",
            queries=(Query(rate("clip_bytes_total", by="direction"), "{{direction}}"),),
            quiet=_NO_CLIPS,
        ),
    ),
)

_SOURCES = Row(
    "Do sources answer?",
    (
        Panel(
            title="How do fetches end?",
            action="failed: ask the tenants whose images fail; blocked: somebody points where nobody may.",
            unit="ops",
            queries=(Query(rate("fetches_total", by="result"), "{{result}}"),),
            stacked=True,
            runbook="sourcefailures",
        ),
        Panel(
            title="How long does a request wait for its images?",
            action="Slow origins: raise fetch.cache_bytes, or tell tenants to send the bytes.",
            unit="s",
            queries=(Query(mean("stage_duration_seconds", where='stage="fetch"'), "mean"),),
        ),
        Panel(
            title="How much is kept?",
            action="Raise media.prepared_cache_bytes or fetch.cache_bytes where hits are few and memory is there.",
            unit="bytes",
            queries=(
                Query(total("prepared_cache_bytes"), "prepared images"),
                Query(total("fetched_cache_bytes"), "fetched files"),
            ),
        ),
    ),
)

_POOL = Row(
    "Is the pool full?",
    (
        Panel(
            title="Who works, who waits?",
            action="Images wait: scale out.",
            unit="none",
            queries=(
                Query(total("pool_workers"), "workers"),
                Query(total("pool_busy"), "busy"),
                Query(total("pool_queued"), "queued"),
            ),
            runbook="poolsaturated",
        ),
        Panel(
            title="How full is each gateway's pool?",
            action="Above 0.9 scale out. Autoscalers use vlmgw:pool_pressure, which is this.",
            unit="percentunit",
            queries=(
                Query(f"({own('pool_busy')} + {own('pool_queued')}) / ({own('pool_workers')} > 0)", "{{instance}}"),
            ),
            limit=0.9,
            runbook="poolsaturated",
        ),
        Panel(
            title="How long do images wait for a worker?",
            action="Scale out.",
            unit="s",
            queries=(
                Query(quantile(0.5, "pool_wait_seconds"), "p50"),
                Query(quantile(0.95, "pool_wait_seconds"), "p95"),
                Query(total("pool_line_seconds"), "work in line"),
            ),
            runbook="poolsaturated",
        ),
        Panel(
            title="Which work is slow?",
            action="Look at formats and sizes in the access log.",
            unit="s",
            queries=(Query(quantile(0.95, "pool_task_seconds", by="operation"), "p95 {{operation}}"),),
        ),
        Panel(
            title="Do workers crash or grow?",
            action="crash, deadline: find the tenant in the access log. memory: lower media.worker_memory_bytes.",
            unit="none",
            queries=(
                Query(f"sum by (reason) (increase({own('pool_restarts_total')}[$__rate_interval]))", "{{reason}}"),
            ),
            quiet="no worker was ever replaced",
            runbook="workerscrashing",
        ),
        Panel(
            title="How much memory do workers take, and will they need?",
            action="Lower max_input_pixels of a policy, or scale out.",
            unit="bytes",
            queries=(
                Query(total("pool_memory_bytes"), "resident"),
                Query(total("pool_reserved_bytes"), "predicted for what runs"),
                Query(total("body_memory_bytes"), "bodies"),
            ),
        ),
    ),
)

_CACHES = Row(
    "Do caches help?",
    (
        Panel(
            title="How often is an image prepared already?",
            action="Rare and repeated images common: raise media.prepared_cache_bytes.",
            unit="percentunit",
            queries=(
                Query(share(rate("prepared_cache_hits_total"), rate("prepared_cache_queries_total")), "this replica"),
                Query(
                    share(rate("shared_cache_hits_total"), rate("shared_cache_queries_total")), "all replicas (Redis)"
                ),
            ),
            share=True,
            quiet="no image needed work, or media.shared_cache_bytes is 0",
        ),
        Panel(
            title="Are workers confined?",
            action="A wall that is missing: run vlm-gateway doctor, or read the started line of the log.",
            unit="none",
            queries=(Query(f"sum by (layer) ({own('sandbox_layer')})", "replicas with it"),),
            kind=Kind.TABLE,
        ),
        Panel(
            title="How full is the pool, over all gateways?",
            action="Scale out before it is 1.",
            unit="percentunit",
            queries=(Query(share(PRESSURE, total("pool_workers")), "busy and queued"),),
            kind=Kind.STAT,
            limit=0.9,
        ),
    ),
)

MEDIA = Dashboard(
    uid="vlmgw-media",
    title="vlm-gateway: media",
    about="Sources, what is done to images, workers, caches.",
    rows=(_SAVED, _DONE, _SOURCES, _POOL, _CACHES),
)
