"""Dashboards as a program: ``python -m grafana.dashboards`` writes the committed JSON."""
