"""What the declaration of a metric is made of, and a short way to write each kind.

Decided here: which facts a metric has. Not decided here: which metrics there are (`catalogue`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PREFIX = "vlmgw_"
# Work inside the gateway: from a text request's whole overhead to a picture that waited for workers.
WORK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One metric. ``question`` is what it answers, ``action`` what an operator does about it."""

    name: str
    kind: Kind
    help: str
    question: str
    action: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    sampled: bool = False

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


def counter(name: str, help_text: str, question: str, action: str, *labels: str) -> Declaration:
    """A counter that the recorder keeps."""
    return Declaration(name, Kind.COUNTER, help_text, question, action, labels)


def gauge(name: str, help_text: str, question: str, action: str, *labels: str) -> Declaration:
    """A number of the moment, read when scraped."""
    return Declaration(name, Kind.GAUGE, help_text, question, action, labels, sampled=True)


def sampled_counter(name: str, help_text: str, question: str, action: str, *labels: str) -> Declaration:
    """A counter that a part keeps itself and that is read when scraped."""
    return Declaration(name, Kind.COUNTER, help_text, question, action, labels, sampled=True)


def histogram(
    name: str, help_text: str, question: str, action: str, *labels: str, buckets: tuple[float, ...] = WORK_BUCKETS
) -> Declaration:
    """A distribution, in at most twelve buckets."""
    return Declaration(name, Kind.HISTOGRAM, help_text, question, action, labels, buckets)
