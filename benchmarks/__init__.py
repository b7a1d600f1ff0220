"""Measurements that print ratios: `python -m benchmarks NAME --json`. They decide nothing and need no network."""
