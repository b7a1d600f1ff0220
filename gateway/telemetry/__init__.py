"""What is shown: metrics, the access line, traces. The shell returns facts, the journey hands them here once per
exchange.

Decided here: names, labels, buckets, what a log line holds. Not decided here: anything about a request.
"""
