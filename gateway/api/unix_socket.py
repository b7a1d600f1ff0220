"""Listening on a path: who may connect is the file's mode, and a file that a dead process left is cleared away.

Decided here: that a living listener's path is never taken over, that the mode holds from the first moment on, and that
only our own file is removed at the end.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

_PATH_LIMIT_BYTES = 107  # sun_path of Linux is 108 bytes, the last of them zero


class UnixListener:
    """A bound socket, not yet listening. Raises OSError, naming the path, for one that cannot be had."""

    def __init__(self, path: Path, mode: int) -> None:
        if len(os.fsencode(path)) > _PATH_LIMIT_BYTES:
            raise OSError(
                f"server.unix_socket: {path} is longer than the {_PATH_LIMIT_BYTES} bytes that a path may have"
            )
        _clear(path)
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        earlier = os.umask(0o777 & ~mode)
        try:
            self.socket.bind(str(path))
        except OSError as error:
            self.socket.close()
            raise OSError(f"server.unix_socket: {path} cannot be made: {error.strerror}") from None
        finally:
            os.umask(earlier)
        path.chmod(mode)
        self._inode = path.stat().st_ino

    def remove(self) -> None:
        """Take the file away, if it is still ours."""
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()


def _clear(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(f"server.unix_socket: {path} is there and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise OSError(f"server.unix_socket: {path} cannot be looked at: {error.strerror or error}") from None
    raise OSError(f"server.unix_socket: somebody listens on {path} already")
