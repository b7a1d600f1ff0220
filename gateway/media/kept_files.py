"""Fetched files that are kept for a while, and how long HTTP lets them be: RFC 9111 for a cache that knows only GET.

Decided here: what may be kept, how long it is fresh, what a conditional request says. Not decided here: how anything is
fetched (``fetch``), whose files these are (the key names the tenant: nobody is served what another one fetched).

Kept is a 200 that came whole, with a validator or a lifetime of its own, unless it says ``no-store``, ``private`` or
``Vary: *``; our requests differ in nothing that another ``Vary`` could name. No lifetime is guessed: without one, the
origin is asked each time whether the file has changed.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

Key = tuple[str, str]  # tenant, URL

_DIRECTIVE = re.compile(r'([A-Za-z0-9_-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,]+)))?')


@dataclass(frozen=True, slots=True)
class Kept:
    """One file with its validators; fresh until ``fresh_until_s`` of the caller's clock, then to be asked about."""

    file: bytes
    etag: str | None
    last_modified: str | None
    fresh_until_s: float

    def is_fresh(self, now_s: float) -> bool:
        """Whether it may be used without asking its origin."""
        return now_s < self.fresh_until_s

    def conditions(self) -> dict[str, str]:
        """The headers that make a request conditional on this file."""
        headers = {}
        if self.etag is not None:
            headers["If-None-Match"] = self.etag
        if self.last_modified is not None:
            headers["If-Modified-Since"] = self.last_modified
        return headers


def lifetime_s(headers: Mapping[str, str]) -> float | None:
    """Seconds for which an answer is fresh from now; ``None`` when it may not be kept at all.

    A shared cache's view: ``s-maxage`` before ``max-age`` before ``Expires``, less the ``Age`` it came with.
    """
    directives = _directives(headers.get("Cache-Control", ""))
    if directives.keys() & {"no-store", "private"} or headers.get("Vary", "").strip() == "*":
        return None
    if "no-cache" in directives:
        return 0.0
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return max(0.0, _seconds(directives[name]) - _seconds(headers.get("Age", "0")))
    return max(0.0, _expires_s(headers) - _seconds(headers.get("Age", "0")))


def _directives(text: str) -> dict[str, str]:
    return {found[1].lower(): found[2] or found[3] or "" for found in _DIRECTIVE.finditer(text)}


def _seconds(text: str) -> float:
    """Delta-seconds; what is none counts as stale (RFC 9111 §4.2.1)."""
    digits = text.strip()
    return float(digits[:10]) if digits.isascii() and digits.isdigit() else 0.0


def _expires_s(headers: Mapping[str, str]) -> float:
    try:
        expires = parsedate_to_datetime(headers["Expires"])
        return (expires - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return 0.0


class KeptFiles:
    """At most ``limit_bytes`` of files, least recently used out first; none is fresh for more than ``max_age_s``."""

    def __init__(self, limit_bytes: int, max_age_s: float) -> None:
        self._limit_bytes = limit_bytes
        self._max_age_s = max_age_s
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Kept | None:
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, key: Key, file: bytes, headers: Mapping[str, str], now_s: float) -> None:
        """Keep a file if its answer lets us, and it takes no more than an eighth of the room; the older one is gone."""
        self.drop(key)
        lifetime = lifetime_s(headers)
        etag, modified = headers.get("ETag"), headers.get("Last-Modified")
        if lifetime is None or len(file) * 8 > self._limit_bytes:
            return
        if lifetime == 0 and etag is None and modified is None:
            return
        self._kept[key] = Kept(file, etag, modified, now_s + min(lifetime, self._max_age_s))
        self.held_bytes += len(file)
        while self.held_bytes > self._limit_bytes:
            self.drop(next(iter(self._kept)))

    def renew(self, key: Key, kept: Kept, headers: Mapping[str, str], now_s: float) -> None:
        """The origin said that the file has not changed (304): its headers replace the kept ones (RFC 9111 §3.2)."""
        if self._kept.get(key) is not kept:
            return
        lifetime = lifetime_s(headers)
        if lifetime is None:
            self.drop(key)
            return
        self._kept[key] = replace(
            kept,
            etag=headers.get("ETag", kept.etag),
            last_modified=headers.get("Last-Modified", kept.last_modified),
            fresh_until_s=now_s + min(lifetime, self._max_age_s),
        )

    def drop(self, key: Key) -> None:
        """Forget a file; nothing happens where there is none."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.held_bytes -= len(kept.file)
