from __future__ import annotations

from typing import Any

import pytest

from gateway.media.confine import seccomp

pytestmark = pytest.mark.slow


def test_the_filter_is_in_force_for_all_threads(in_child: Any) -> None:
    told, modes, opened = in_child(
        """
        import threading
        from pathlib import Path
        from gateway.media.confine import kernel, seccomp
        gate = threading.Event()
        thread = threading.Thread(target=gate.wait)
        thread.start()
        status = [open(task / "status") for task in Path("/proc/self/task").iterdir()]
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        told = seccomp.close()
        modes = [file.read().partition("Seccomp:")[2].split()[0] for file in status]
        try:
            open("/etc/passwd").close()
            opened = True
        except PermissionError:
            opened = False
        gate.set()
        thread.join()
        late = threading.Thread(target=lambda: None)
        late.start()
        late.join()
        tell([told, modes, opened])
        """
    )
    assert told == seccomp.check()
    assert modes == ["2", "2"]
    assert not opened


def test_without_no_new_privs_it_is_refused_or_we_are_root(in_child: Any) -> None:
    told = in_child(
        """
        from gateway.media.confine import seccomp, user
        try:
            user.become("65534")
        except OSError:
            pass
        try:
            seccomp.close()
        except OSError as error:
            tell(error.strerror)
        """
    )
    assert "seccomp" in told
