"""Stage *decide*: which backend gets a request, and why.

Pure: backends come as snapshots, cache residency as a callable, time and load inside the snapshots. Not decided here:
whether a backend is healthy (``gateway.upstream``), what a request costs (``gateway.models``), what is sent again.
"""
