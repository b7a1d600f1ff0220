"""Metrics of how backends stand, and of what nobody took: part of the catalogue, which has the rules."""

from __future__ import annotations

from gateway.telemetry.declaration import Declaration, counter, gauge, sampled_counter

STANDING_METRICS: tuple[Declaration, ...] = (
    counter(
        "upstream_stranded_total",
        "Requests not taken nor sent elsewhere: every backend tried (nowhere), retry budget spent, body gone (sent).",
        "Is there nobody left to go to?",
        "Add backends; budget: see upstream_retries_total, and retry_ratio.",
        "reason",
    ),
    sampled_counter(
        "backend_ejections_total",
        "Ejections of a backend that does much worse than the others of its model, by what it does worse.",
        "Which backend is an outlier?",
        "Look at the backend.",
        "backend",
        "reason",
    ),
    sampled_counter(
        "upstream_cut_total",
        "Exchanges cut because they fell silent while nobody listened on their backend's port.",
        "Do engines hang when they are told to leave?",
        "Let them finish (vLLM: --shutdown-timeout), or look why they hang.",
    ),
    gauge(
        "breaker_backends",
        "Backends by the state of their circuit breaker: closed, half_open, open.",
        "Do backends lose connections?",
        "See backend_up for which, and look at it.",
        "state",
    ),
)
