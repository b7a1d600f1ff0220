"""Stage *decide*: which backend gets a request, and why.

Pure: backends come as snapshots with time and load in them, what they hold as holdings. Not decided here:
whether a backend is healthy (``gateway.upstream``), what a request costs (``gateway.models``), what is sent again.
"""
