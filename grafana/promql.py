"""The few shapes of expressions, so that none divides by nothing or forgets whose series it takes.

Decided here: that every series is one of the chosen gateways, rates cover ``$__rate_interval``, a share is told only
while there is something to share. Names are those of the catalogue, without the prefix. Not decided here: which.
"""

from __future__ import annotations

from gateway.telemetry.declaration import PREFIX

OWN = 'job=~"$job",instance=~"$instance"'
ENGINE = 'job=~"$engines"'


def own(name: str, where: str = "") -> str:
    """The series of a metric at the chosen gateways; ``where`` holds further matchers."""
    return f"{PREFIX}{name}{{{OWN}{',' if where else ''}{where}}}"


def _by(by: str) -> str:
    return f" by ({by})" if by else ""


def total(name: str, where: str = "", by: str = "") -> str:
    """The sum of a gauge over the chosen gateways."""
    return f"sum{_by(by)} ({own(name, where)})"


def rate(name: str, where: str = "", by: str = "") -> str:
    """How much of a counter comes each second."""
    return f"sum{_by(by)} (rate({own(name, where)}[$__rate_interval]))"


def share(part: str, whole: str) -> str:
    """``part / whole`` while there is a whole; both have the same labels."""
    return f"{part} / ({whole} > 0)"


def per(parts: str, whole: str) -> str:
    """Each of ``parts`` over the one ``whole``, while there is one."""
    return f"{parts} / on () group_left () ({whole} > 0)"


def quantile(of: float, name: str, by: str = "", where: str = "") -> str:
    """A quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({of:g}, sum by ({labels}) (rate({own(name + '_bucket', where)}[$__rate_interval])))"


def mean(name: str, by: str = "", where: str = "") -> str:
    """The mean of a histogram's values."""
    return share(rate(name + "_sum", where, by), rate(name + "_count", where, by))
