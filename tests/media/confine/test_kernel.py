from __future__ import annotations

import errno
import os
import platform

import pytest

from gateway.media.confine import kernel
from gateway.media.confine.machines import MACHINES


def test_a_call_by_name_answers_as_the_system_does() -> None:
    assert kernel.call("getpid") == os.getpid()
    assert kernel.machine() is MACHINES[platform.machine()]


def test_a_failure_is_an_oserror_with_its_number() -> None:
    with pytest.raises(OSError, match="kill") as failure:
        kernel.call("kill", os.getpid(), 4_000)
    assert failure.value.errno == errno.EINVAL
    with pytest.raises(OSError, match="prctl"):
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 4_000)


def test_a_machine_without_a_table_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    with pytest.raises(OSError, match="pdp11"):
        kernel.machine()
