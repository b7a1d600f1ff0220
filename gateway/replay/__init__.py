"""Requests of the past under other policies, from access logs: they hold sizes and counts, never content."""
