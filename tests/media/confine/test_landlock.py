from __future__ import annotations

import struct
from typing import Any

import pytest

from gateway.media.confine import landlock

pytestmark = pytest.mark.slow

CLOSED = """
from gateway.media.confine import kernel, landlock
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
try:
    told = landlock.close()
except OSError as error:
    told = error.strerror
try:
    open("/etc/passwd").close()
    opened = True
except OSError:
    opened = False
tell([told, opened])
"""


def test_every_version_handles_all_it_knows() -> None:
    lengths = [len(landlock.ruleset_attributes(version)) for version in (1, 2, 3, 4, 5, 6, 9)]
    assert lengths == [8, 8, 8, 16, 16, 24, 24]
    assert struct.unpack("=3Q", landlock.ruleset_attributes(7)) == (0xFFFF, 3, 3)
    assert struct.unpack("=Q", landlock.ruleset_attributes(2)) == (0x3FFF,)


def test_what_it_closes_is_told() -> None:
    assert landlock.describe(1) == "ABI 1: no files"
    assert landlock.describe(6) == "ABI 6: no files, TCP, signals"


def test_no_file_can_be_opened_where_the_kernel_has_it(in_child: Any) -> None:
    told, opened = in_child(CLOSED)
    try:
        version = landlock.abi_version()
    except OSError:
        assert opened
        assert told
    else:
        assert not opened
        assert told == landlock.describe(version)


def test_a_thread_from_before_would_stand_outside(in_child: Any) -> None:
    told = in_child(
        """
        import threading
        from gateway.media.confine import landlock
        gate = threading.Event()
        threading.Thread(target=gate.wait).start()
        try:
            landlock.close()
        except OSError as error:
            tell(error.strerror)
        gate.set()
        """
    )
    assert told == "1 threads were started before it could be closed"
