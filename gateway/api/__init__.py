"""Stages *accept* and *relay*: the HTTP edge towards clients, and the only place that knows aiohttp's server.

Decided here: routes, who calls (keys), how a body is taken in and an answer or an error is written out. Not decided
here: anything about a request's content; the journey has no HTTP in it.
"""
