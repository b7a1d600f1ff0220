"""What is shown: metrics, logs, trace context. The shell returns facts, the journey hands them here, once per exchange.

Decided here: names, labels, buckets, what a log line holds. Not decided here: anything about a request.
"""
