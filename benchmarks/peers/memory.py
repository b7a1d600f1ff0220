"""Memory of each contender's whole process tree: idle, at most while 5 MB images pass, afterwards, per idle connection.

RSS counts memory that processes of a tree share once for each of them; PSS divides it among them and is what the tree
takes of the machine. The peak is the sum of the processes' own high-water marks, reset before the images. An idle
connection has asked one text request and stays open; what it costs is the growth of PSS by so many of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contenders import Contender, family_of
from benchmarks.peers.asking import Askers
from benchmarks.peers.bodies import TEXT, image_body, photograph

_LARGE_BYTES = 5_000_000
_IMAGES, _AT_ONCE = 24, 4
_CONNECTIONS = 400
_SETTLE_S = 2.0
_MIB = 1024


def measure(contenders: Sequence[Contender]) -> dict[str, dict[str, float]]:
    """MiB (and KiB per idle connection) by contender; each must be freshly started."""
    return {contender.name: _of(contender) for contender in contenders}


def _of(contender: Contender) -> dict[str, float]:
    time.sleep(_SETTLE_S)
    idle = {"idle_rss_mib": _sum(contender.pid, "Rss"), "idle_pss_mib": _sum(contender.pid, "Pss")}
    connection_kib = _per_connection_kib(contender)
    for one in family_of(contender.pid):
        Path(f"/proc/{one}/clear_refs").write_text("5")
    body = image_body(photograph(_LARGE_BYTES))
    askers = Askers(contender, _AT_ONCE)
    try:
        askers.ask(lambda _: body, _IMAGES)
    finally:
        askers.close()
    peak_mib = sum(_status_kib(one, "VmHWM") for one in family_of(contender.pid)) / _MIB
    time.sleep(_SETTLE_S)
    after = {"after_rss_mib": _sum(contender.pid, "Rss"), "after_pss_mib": _sum(contender.pid, "Pss")}
    found = idle | {"peak_rss_mib": peak_mib} | after | {"idle_connection_kib": connection_kib}
    return {name: round(value, 1) for name, value in found.items()}


def _per_connection_kib(contender: Contender) -> float:
    """After as many requests over few connections, so that what grows by requests has grown."""
    few = Askers(contender, _AT_ONCE)
    try:
        few.ask(lambda _: TEXT, _CONNECTIONS)
    finally:
        few.close()
    time.sleep(_SETTLE_S)
    before_kib = _MIB * _sum(contender.pid, "Pss")
    askers = Askers(contender, _CONNECTIONS)
    try:
        for start in range(0, _CONNECTIONS, _AT_ONCE):
            askers.ask(lambda _: TEXT, _AT_ONCE, first=start)
        return (_MIB * _sum(contender.pid, "Pss") - before_kib) / _CONNECTIONS
    finally:
        askers.close()


def _sum(pid: int, name: str) -> float:
    """MiB of the whole tree."""
    return sum(_rollup_kib(one, name) for one in family_of(pid)) / _MIB


def _rollup_kib(pid: int, name: str) -> int:
    return _kib(Path(f"/proc/{pid}/smaps_rollup").read_text(), name)


def _status_kib(pid: int, name: str) -> int:
    return _kib(Path(f"/proc/{pid}/status").read_text(), name)


def _kib(text: str, name: str) -> int:
    found = re.search(rf"^{name}: *(\d+) kB", text.replace("\t", " "), re.MULTILINE)
    return int(found[1]) if found else 0
