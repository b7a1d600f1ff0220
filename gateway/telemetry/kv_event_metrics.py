"""Metrics of KV events: part of the catalogue, which has the rules."""

from __future__ import annotations

from gateway.telemetry.declaration import Declaration, counter, gauge, sampled_counter

KV_EVENT_METRICS: tuple[Declaration, ...] = (
    counter(
        "exact_prefixes_total",
        "Requests to a backend whose KV events told how much of the prompt it holds, against its own count of it.",
        "Do backends hold what they published?",
        "more or less all the time: compare prefix_hash, kv_hash_seed and the tokenizer with the engine's.",
        "result",
    ),
    gauge(
        "kv_event_backends",
        "Backends that publish KV events: all that they said is known (fresh), or not (behind: routed to by belief).",
        "Is routing by prefix exact?",
        "See kv_event_gaps_total, and whether event and replay ports can be reached.",
        "state",
    ),
    gauge(
        "kv_blocks", "KV blocks known to be held.", "How much do backends hold?", "Compare upstream.kv_events_blocks."
    ),
    gauge("kv_index_bytes", "Memory of the index of KV blocks.", "What does it cost?", "Lower kv_events_blocks."),
    sampled_counter(
        "kv_events_total",
        "KV events: applied, without sense (ignored), or from a publisher that nobody knows (stranger).",
        "Do engines publish, and who else?",
        "Close the event ports to everybody but engines and gateways.",
        "result",
    ),
    sampled_counter(
        "kv_event_gaps_total", "Runs of messages that were missed.", "Are they too fast?", "Look at loop_lag_seconds."
    ),
    sampled_counter(
        "kv_event_replays_total",
        "Replays asked for, and those that nobody answered.",
        "Are gaps filled?",
        "Set replay_endpoint at the engine, and open its port.",
        "result",
    ),
    sampled_counter(
        "kv_event_restarts_total", "Publishers that began anew.", "Do engines restart?", "Look at the engines' logs."
    ),
)
