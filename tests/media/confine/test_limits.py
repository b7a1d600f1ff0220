from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_memory_and_core_dumps_are_bounded_from_the_start(in_child: Any) -> None:
    data, core, files, score = in_child(
        """
        import resource
        from pathlib import Path
        from gateway.media.confine import limits
        limits.limit(512 << 20, 1 << 20)
        names = (resource.RLIMIT_DATA, resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)
        tell([*[resource.getrlimit(name) for name in names], Path("/proc/self/oom_score_adj").read_text().strip()])
        """
    )
    assert data == [512 << 20] * 2
    assert core == [0, 0]
    assert files == [64, 64]
    assert score == "800"


def test_a_limit_is_never_raised(in_child: Any) -> None:
    limit = in_child(
        """
        import resource
        from gateway.media.confine import limits
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        limits.limit(512 << 20, 1 << 20)
        tell(resource.getrlimit(resource.RLIMIT_NOFILE))
        """
    )
    assert limit == [32, 32]


def test_after_settling_no_descriptor_is_new_and_no_file_grows(in_child: Any, tmp_path: Any) -> None:
    found = in_child(
        f"""
        import errno, mmap, socket
        from gateway.media.confine import limits
        file = os.open({str(tmp_path / "file")!r}, os.O_RDWR | os.O_CREAT)
        limits.settle(own_user=False)
        found = []
        def attempt(deed):
            try:
                deed()
                found.append(None)
            except OSError as error:
                found.append(error.errno)
        attempt(lambda: os.open("/etc/passwd", os.O_RDONLY))
        attempt(socket.socket)
        attempt(lambda: os.dup(0))
        attempt(lambda: os.write(file, b"x"))
        os.close(0)
        attempt(lambda: os.open("/etc/passwd", os.O_RDONLY))
        tell(found)
        """
    )
    assert found == [24, 24, 22, 27, 24]  # EMFILE (of fcntl: EINVAL), and EFBIG for the file


def test_a_worker_ends_when_its_parent_is_another_already(in_child: Any) -> None:
    status = in_child(
        """
        from gateway.media.confine import limits
        child = os.fork()
        if child == 0:
            limits.follow(parent_pid=1 << 30)
            os._exit(7)
        tell(os.waitpid(child, 0)[1])
        """
    )
    assert status == 0
