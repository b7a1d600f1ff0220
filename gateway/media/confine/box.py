"""Closing the box: in which order the walls go up, and what is said when one is missing.

First what needs privileges, then what needs files, the filter last. Descriptors come before the filter because limits
are calls too. Each wall that cannot be had is named with its reason; whether that is a failure is the mode's to say.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from gateway.media.confine import landlock, limits, seccomp, user
from gateway.media.confine.kernel import PR_SET_NO_NEW_PRIVS, prctl
from gateway.media.confine.report import BoxReport, Layer, SandboxMode


class BoxIncomplete(Exception):
    """``media.sandbox`` is ``require`` and a wall is missing; the text names each with its reason."""


def enclose(mode: SandboxMode, user_name: str, parent_pid: int) -> BoxReport:
    """Close every wall that this machine has around this process, for good.

    Call it after the last import and before the first thread. Raises BoxIncomplete, UnknownUser.
    """
    if mode == "off":
        return BoxReport()
    _silence()
    was_root = os.geteuid() == 0
    walls = _Walls()
    walls.close(Layer.USER, lambda: user.become(user_name))
    limits.follow(parent_pid)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    walls.close(Layer.LANDLOCK, landlock.close)
    walls.close(Layer.DESCRIPTORS, lambda: limits.settle(own_user=was_root and os.geteuid() != 0))
    walls.close(Layer.SECCOMP, seccomp.close)
    return _judged(walls.report(), mode)


def probe(user_name: str) -> BoxReport:
    """What ``enclose`` would find here, without closing anything. Raises UnknownUser."""
    uid, _ = user.resolve(user_name)
    walls = _Walls()
    walls.close(Layer.USER, lambda: _unless(user.obstacle(), user.describe(uid)))
    walls.close(Layer.LANDLOCK, lambda: landlock.describe(landlock.abi_version()))
    walls.close(Layer.DESCRIPTORS, lambda: limits.SETTLED)
    walls.close(Layer.SECCOMP, seccomp.check)
    return walls.report()


class _Walls:
    """What stands and what is missing so far."""

    def __init__(self) -> None:
        self._active: dict[str, str] = {}
        self._missing: dict[str, str] = {}

    def close(self, layer: Layer, wall: Callable[[], str]) -> None:
        try:
            self._active[layer.value] = wall()
        except OSError as error:
            self._missing[layer.value] = error.strerror or str(error)

    def report(self) -> BoxReport:
        return BoxReport(self._active, self._missing)


def _judged(report: BoxReport, mode: SandboxMode) -> BoxReport:
    if mode == "require" and report.missing:
        reasons = "; ".join(f"{layer}: {reason}" for layer, reason in report.missing.items())
        raise BoxIncomplete(f"media.sandbox is require, and these walls are missing: {reasons}")
    return report


def _unless(hindrance: str | None, told: str) -> str:
    if hindrance is not None:
        raise OSError(0, hindrance)
    return told


def _silence() -> None:
    """What a library writes to its standard error must not fill the gateway's log."""
    null_fd = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null_fd, stream)
    if null_fd > 2:
        os.close(null_fd)
