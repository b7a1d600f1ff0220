"""Metrics of image workers, caches, fetched files, videos and sounds: part of the catalogue, which has the rules."""

from __future__ import annotations

from gateway.telemetry.declaration import Declaration, counter, gauge, histogram, sampled_counter

MEDIA_METRICS: tuple[Declaration, ...] = (
    gauge("pool_workers", "Image workers, without spares.", "Are workers alive?", "Look at pool_restarts_total."),
    gauge("pool_busy", "Image workers at work.", "Is the pool full?", "Scale out."),
    gauge("pool_queued", "Images waiting for a worker.", "Is the pool full?", "Scale out."),
    gauge(
        "pool_line_seconds", "Work expected of all that waits, for one worker.", "How long is the line?", "Scale out."
    ),
    gauge(
        "pool_reserved_bytes",
        "Memory that running jobs are predicted to need.",
        "Is memory what jobs wait for?",
        "Lower max_input_pixels of a policy, or scale out.",
    ),
    histogram("pool_wait_seconds", "Time an image waited for a worker.", "Is the pool full?", "Scale out."),
    histogram(
        "pool_task_seconds", "Work on one image.", "Which work is slow?", "Look at formats and sizes.", "operation"
    ),
    sampled_counter(
        "pool_restarts_total",
        "Workers replaced.",
        "Who sends bombs, do codecs leak, does an image break in (forbidden)?",
        "Find the tenant in the access log.",
        "reason",
    ),
    gauge(
        "sandbox_layer",
        "Whether a wall stands around image workers: user, landlock, descriptors, seccomp.",
        "Are workers confined?",
        "Read the started line of the log, or run doctor.",
        "layer",
    ),
    gauge("pool_memory_bytes", "Resident memory of all workers.", "Do workers grow?", "Lower worker_memory_bytes."),
    gauge(
        "body_memory_bytes", "Shared memory held by bodies in flight.", "Do large bodies pile up?", "Raise slab_bytes."
    ),
    counter("prepared_cache_queries_total", "Look-ups in the prepared-image cache.", "Does the cache help?", "None."),
    counter(
        "prepared_cache_hits_total",
        "Hits in the prepared-image cache.",
        "Does the cache help?",
        "Raise prepared_cache_bytes.",
    ),
    sampled_counter("shared_cache_queries_total", "Look-ups among prepared images in Redis.", "Does it help?", "None."),
    sampled_counter(
        "shared_cache_hits_total",
        "Hits among prepared images in Redis.",
        "Does it help?",
        "Raise media.shared_cache_bytes, or set 0.",
    ),
    gauge("prepared_cache_bytes", "Size of the prepared-image cache.", "Does the cache help?", "Raise its limit."),
    sampled_counter(
        "fetches_total",
        "Remote images that were fetched, kept files among them, by how that ended: ok, blocked (no public or allowed "
        "address), failed, too_large, refused (by a limit of the policy).",
        "Do image sources answer?",
        "Ask the tenants whose images fail (access log, code source_failed); blocked: read the line's detail.",
        "result",
    ),
    gauge("fetched_cache_bytes", "Fetched files that are kept.", "Do kept files help?", "Raise fetch.cache_bytes."),
    counter(
        "clips_total",
        "Videos and sounds that were looked at, by what was done.",
        "Are videos sampled, or passed as files?",
        "The rule `video`.",
        "kind",
        "action",
    ),
    counter("clip_bytes_total", "Bytes of videos and sounds.", "How heavy are they?", "max_video_bytes.", "direction"),
    counter(
        "video_token_drift_total",
        "Responses whose video tokens were not those expected.",
        "Are videos counted right?",
        "Set the model's video_frames and video_frames_per_s to what the engine was started with.",
    ),
)
