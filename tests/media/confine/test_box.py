from __future__ import annotations

import os
from typing import Any

import pytest

from gateway.media.confine import box, landlock, seccomp, user
from gateway.media.confine.report import BoxReport, Layer

pytestmark = pytest.mark.slow

CLOSED = """
from gateway.media import confine
import msgspec
report = confine.enclose("auto", "nobody", os.getppid())
tell([report.active, report.missing])
"""


def absent() -> str:
    raise OSError(38, "Function not implemented")


def test_what_a_probe_finds_is_what_closes(in_child: Any) -> None:
    active, missing = in_child(CLOSED)
    assert box.probe("nobody") == BoxReport(active, missing)
    assert Layer.SECCOMP in active
    assert Layer.DESCRIPTORS in active


def test_off_closes_nothing() -> None:
    before = os.getresuid()
    assert box.enclose("off", "nobody", os.getppid()) == BoxReport()
    assert os.getresuid() == before


def test_a_kernel_without_walls_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi_version", absent)
    monkeypatch.setattr(seccomp, "check", absent)
    monkeypatch.setattr(user, "obstacle", lambda: "root without CAP_KILL")
    report = box.probe("nobody")
    assert report.missing == {
        "user": "root without CAP_KILL",
        "landlock": "Function not implemented",
        "seccomp": "Function not implemented",
    }
    assert set(report.active) == {"descriptors"}


def test_require_refuses_by_name_what_auto_goes_without(in_child: Any) -> None:
    told, report = in_child(
        """
        from gateway.media.confine import box, landlock
        def absent():
            raise OSError(38, "Function not implemented")
        landlock.close = absent
        report = box.enclose("auto", "nobody", os.getppid())
        try:
            box._judged(report, "require")
        except box.BoxIncomplete as error:
            tell([str(error), report.missing])
        """
    )
    assert "landlock: Function not implemented" in told
    assert report["landlock"] == "Function not implemented"


def test_a_user_that_is_not_there_is_refused() -> None:
    with pytest.raises(user.UnknownUser):
        box.probe("unheard-of")
