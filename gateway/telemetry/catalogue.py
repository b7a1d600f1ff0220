"""Every metric, declared once with the question it answers and what to do about the answer.

Decided here: names, types, labels, buckets and help; docs/metrics.md is generated from this table and dashboards are
checked against it. Rules: base units, no exported ratios, label values only from closed sets or configuration, tenants
never on histograms, at most twelve buckets. Not decided here: how values are kept and rendered (``metrics``).
"""

from __future__ import annotations

from gateway.telemetry.declaration import PREFIX, WORK_BUCKETS, Declaration, Kind
from gateway.telemetry.declaration import counter as _counter
from gateway.telemetry.declaration import gauge as _gauge
from gateway.telemetry.declaration import histogram as _histogram
from gateway.telemetry.declaration import sampled_counter as _sampled_counter
from gateway.telemetry.kv_event_metrics import KV_EVENT_METRICS
from gateway.telemetry.media_metrics import MEDIA_METRICS
from gateway.telemetry.standing_metrics import STANDING_METRICS

__all__ = ["DECLARATIONS", "OTHER", "PREFIX", "WORK_BUCKETS", "Declaration", "Kind"]

OTHER = "other"

# Whole requests: from a short answer to a long stream. Two families have them, so they may be many.
REQUEST_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)
# Fourteen stages are told apart, so each has few; what is charted is their sum over their count.
STAGE_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
RATIO_BUCKETS = (0.8, 0.99, 1.01, 1.25)  # wrong by more than rounding, and badly wrong; one histogram per family


DECLARATIONS: tuple[Declaration, ...] = (
    _counter(
        "requests_total",
        "Exchanges by how they ended.",
        "How much traffic, and how much of it fails?",
        "Look at errors_total by code.",
        "dialect",
        "outcome",
    ),
    _counter(
        "tenant_requests_total",
        "Exchanges by tenant and how they ended; failed: by our or a backend's fault (requests_total, errors_total).",
        "Who sends it?",
        "Talk to the tenant, or change its policy.",
        "tenant",
        "outcome",
    ),
    _counter(
        "errors_total",
        "Errors by code of the error tree.",
        "Why do requests fail?",
        "See docs/errors.md for the code.",
        "code",
    ),
    _histogram(
        "request_duration_seconds",
        "Whole exchange.",
        "How long does a request take?",
        "Compare with overhead_seconds and upstream_ttft_seconds.",
        "dialect",
        "stream",
        buckets=REQUEST_BUCKETS,
    ),
    _histogram(
        "time_to_first_byte_seconds",
        "Until the first byte of a stream went to the client.",
        "What does a client feel?",
        "Compare with overhead_seconds.",
        "dialect",
        buckets=REQUEST_BUCKETS,
    ),
    _histogram(
        "overhead_seconds",
        "Everything but image fetches and the engine.",
        "What do we cost?",
        "Add image workers, or look at stage_duration_seconds.",
        "images",
    ),
    _histogram(
        "stage_duration_seconds",
        "One stage of the journey.",
        "Where does time go?",
        "Look at the stage.",
        "stage",
        buckets=STAGE_BUCKETS,
    ),
    _gauge("requests_inflight", "Exchanges in flight.", "How loaded are we?", "Scale out.", "dialect"),
    _gauge(
        "oldest_request_seconds", "Age of the oldest exchange in flight.", "Is one stuck?", "Look at its access line."
    ),
    _counter("images_total", "Images by what was done.", "What do we do to images?", "None.", "action"),
    _counter(
        "image_changes_total",
        "Changes made to images by reason.",
        "Why are images not passed untouched?",
        "Tell clients to send conforming images.",
        "change",
    ),
    _counter(
        "image_ids_total",
        "Images sent to vLLM under ids of ours: with their bytes, as the id alone, or first alone and then with bytes "
        "because the engine no longer had them (missed).",
        "How many images need no bytes, and how often is that belief wrong?",
        "Many missed: raise --mm-processor-cache-gb, or set takes_ids: false for a backend that stands for several.",
        "action",
    ),
    _counter("image_bytes_total", "Image bytes.", "How many bytes are saved?", "None.", "direction"),
    _counter("image_pixels_total", "Image pixels.", "How many pixels are saved?", "None.", "direction"),
    _counter(
        "image_tokens_total",
        "Image tokens, as the originals would cost and as sent.",
        "How many tokens are saved?",
        "None.",
        "family",
        "direction",
    ),
    _counter(
        "stripped_fields_total",
        "Engine-internal fields and headers removed from clients' requests.",
        "Does a client try to steer the engine?",
        "Talk to the tenant.",
    ),
    *MEDIA_METRICS,
    _counter("estimated_tokens_total", "Estimated tokens.", "What did we expect?", "None.", "kind"),
    _histogram(
        "estimate_ratio",
        "Prompt tokens by the engine over our estimate.",
        "Is our arithmetic right?",
        "Check the model's checkpoint and max_pixels.",
        "family",
        buckets=RATIO_BUCKETS,
    ),
    _counter(
        "image_token_drift_total",
        "Responses whose image tokens differ from the estimate.",
        "Is our image arithmetic exact?",
        "Run doctor against the backend; set the model's max_pixels.",
        "family",
    ),
    _counter(
        "unverified_total",
        "Responses without usage, settled by estimate.",
        "How much is unverified?",
        "Let clients ask for usage.",
        "dialect",
    ),
    _counter("tokens_total", "Tokens as engines reported them.", "Who uses what?", "None.", "tenant", "kind"),
    _gauge(
        "budget_reserved_tokens",
        "KV tokens a tenant holds in flight.",
        "Who is near the limit?",
        "Raise the tenant's budget.",
        "tenant",
    ),
    _gauge(
        "budget_limit_tokens",
        "A tenant's limit of KV tokens in flight.",
        "Who is near the limit?",
        "Raise the tenant's budget.",
        "tenant",
    ),
    _counter(
        "tenant_budget_refusals_total",
        "Reservations refused, by tenant.",
        "Who is held back?",
        "Raise the tenant's budget; see budget_refusals_total for the limit.",
        "tenant",
    ),
    _gauge(
        "state_degraded",
        "Whether the shared store is away and this replica decides by its share of the limits.",
        "Do budgets hold across replicas?",
        "Look at the store, and at the log line store_away.",
    ),
    _gauge(
        "state_replicas",
        "Replicas that share the budgets, as last known.",
        "What is a replica's share while the store is away?",
        "None.",
    ),
    _counter(
        "state_operations_total",
        "Batches to the shared store by what they do and how they ended.",
        "Does the store answer?",
        "Look at the store; timeout: compare state_seconds with redis.deadline_s.",
        "operation",
        "result",
    ),
    _histogram(
        "state_seconds",
        "Until the shared store has answered: take, on the requests' path, and all else.",
        "What does the store cost?",
        "Move it nearer.",
        "operation",
    ),
    _sampled_counter(
        "reservations_expired_total",
        "Leases in the shared store that ended because their replica fell silent.",
        "Does a replica crash?",
        "Look for restarts of replicas.",
    ),
    _counter(
        "budget_refusals_total",
        "Reservations refused, by the limit that refused them.",
        "What holds requests back?",
        "Raise that limit, or add backends where it is backend_kv.",
        "rule",
    ),
    _gauge(
        "budget_waiting_requests",
        "Requests that wait for a budget or for room on a backend.",
        "How long is the line?",
        "See budget_refusals_total and stage_duration_seconds of reserve.",
    ),
    _counter(
        "route_decisions_total", "Routing decisions by reason.", "Is traffic affine or balanced?", "None.", "reason"
    ),
    *KV_EVENT_METRICS,
    *STANDING_METRICS,
    _counter("affinity_queries_total", "Images routed.", "Do images go where they are known?", "None."),
    _counter(
        "affinity_hits_total",
        "Images routed to a backend that has seen them.",
        "Do images go where they are known?",
        "None.",
    ),
    _counter(
        "upstream_requests_total",
        "Requests sent to backends by result; not_its_fault: ended by us or the client (errors_total).",
        "Which backend fails?",
        "Look at the backend.",
        "backend",
        "result",
    ),
    _counter(
        "image_hints_total",
        "Images whose place was told to other replicas, or heard from them, through Redis.",
        "Do replicas know of each other?",
        "Look at the log line store_away of store hints.",
        "direction",
    ),
    _counter(
        "legs_total",
        "Parts of requests given to encoders and prefill: done, refused, failed; remembered: not asked again; "
        "whole: the request went undivided all the same.",
        "Do helpers help?",
        "Look at the helper's log where legs fail or requests go whole.",
        "role",
        "end",
    ),
    _counter(
        "upstream_retries_total",
        "Requests sent again: elsewhere, because they were certainly not taken; cache_miss: with their images' bytes.",
        "Do backends refuse?",
        "Look at the backend.",
        "reason",
    ),
    _histogram(
        "upstream_ttft_seconds",
        "From forwarding to the engine's first byte.",
        "Is it the engine or us?",
        "Scale the engines.",
        "engine",
        buckets=REQUEST_BUCKETS,
    ),
    _gauge("backend_up", "Whether a backend is healthy.", "Is the fleet up?", "Look at the backend.", "backend"),
    _gauge("backend_inflight", "Our requests on a backend.", "Is the fleet balanced?", "None.", "backend"),
    _gauge("backend_queued", "Requests the engine says are waiting.", "Is the engine full?", "Add engines.", "backend"),
    _gauge(
        "backend_kv_ratio", "KV cache use the engine reports, 0 to 1.", "Is the engine full?", "Add engines.", "backend"
    ),
    _gauge(
        "backend_telemetry_age_seconds",
        "Age of a backend's last scraped metrics.",
        "Is routing blind?",
        "Look at the backend's /metrics.",
        "backend",
    ),
    _gauge(
        "backend_source_ok",
        "Whether a source of backends answered last time; its last answer holds when not.",
        "Is the fleet as it should be?",
        "Read the log (source_failed).",
        "source",
    ),
    _gauge(
        "backend_source_backends", "Backends that a source's last good answer has.", "Who is found?", "None.", "source"
    ),
    _sampled_counter(
        "backend_source_failures_total",
        "Times a source of backends could not be asked or gave an answer that cannot be used.",
        "Is the fleet as it should be?",
        "Read the log (source_failed).",
        "source",
    ),
    _sampled_counter(
        "backends_changed_total",
        "Backends that joined or left while running.",
        "Does the fleet hold still?",
        "Look at what starts and stops the engines.",
        "change",
    ),
    _histogram(
        "loop_lag_seconds", "Drift of a 50 ms sleep on the event loop.", "Does something block the loop?", "Report it."
    ),
    _counter("loop_stalls_total", "Loop drifts above 50 ms.", "Does something block the loop?", "Report it."),
    _sampled_counter(
        "config_reloads_total",
        "Reloads by result: ok, failed (nothing changed).",
        "When did configuration change?",
        "Failed: read the log line reload, which names every problem.",
        "result",
    ),
    _gauge(
        "config_last_reload_successful",
        "Whether the last reload was taken over.",
        "Is configuration stale?",
        "Read the log.",
    ),
    _gauge(
        "config_last_reload_success_timestamp_seconds",
        "When configuration was last taken over.",
        "Is configuration stale?",
        "Read the log.",
    ),
    _sampled_counter(
        "log_lines_dropped_total",
        "Log lines dropped because standard output was blocked.",
        "Are logs complete?",
        "Unblock the log collector.",
    ),
    _sampled_counter(
        "traced_requests_total",
        "Requests whose spans the collector took (sent) or did not (failed), or for which there was no room (dropped).",
        "Are traces complete?",
        "failed: read the log (spans_not_sent); dropped: lower tracing.sample_ratio.",
        "end",
    ),
    _gauge("draining", "Whether the process is draining.", "Is it leaving?", "None."),
    _gauge("build_info", "Always 1.", "What runs?", "None.", "version", "codec_backend"),
)

__all__ = ["DECLARATIONS", "OTHER", "PREFIX", "REQUEST_BUCKETS", "WORK_BUCKETS", "Declaration", "Kind"]
