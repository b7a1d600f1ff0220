"""Listening on a path: the mode, stale files, living listeners, what is left at the end."""

from __future__ import annotations

import asyncio
import socket
import stat
from pathlib import Path

import pytest

from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from gateway.api.unix_socket import UnixListener
from tests.api.harness import Serving, Wire, post


async def test_requests_are_answered_on_the_path_and_no_port_is_open(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    state = Serving()
    server = DataServer(
        DataHandler(state.edge()),
        host="127.0.0.1",
        port=0,
        keepalive_timeout_s=5.0,
        unix=UnixListener(path, 0o640),
        listens_on_tcp=False,
    )
    assert await server.start() == 0
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        wire = Wire(*await asyncio.open_unix_connection(str(path)))
        await wire.send(post(b"{}"))
        assert (await wire.answer()).body == b"{}"
        wire.close()
    finally:
        await server.stop()
        state.slab.close()
    assert not path.exists()


def test_what_a_dead_process_left_is_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listener = UnixListener(path, 0o600)
    listener.socket.close()
    listener.remove()
    assert not path.exists()


def test_a_living_listener_is_never_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "living.sock"
    first = UnixListener(path, 0o600)
    first.socket.listen()
    with pytest.raises(OSError, match="listens on"):
        UnixListener(path, 0o600)
    first.socket.close()
    first.remove()


def test_a_file_that_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(OSError, match="no socket"):
        UnixListener(path, 0o600)
    assert path.read_text() == "mine"


def test_paths_that_cannot_be_had_are_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"server\.unix_socket: .*cannot be made"):
        UnixListener(tmp_path / "none" / "a.sock", 0o600)
    with pytest.raises(OSError, match="longer than"):
        UnixListener(tmp_path / ("a" * 120), 0o600)


def test_anothers_file_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    listener = UnixListener(path, 0o600)
    listener.socket.close()
    path.unlink()
    path.write_text("another's")
    listener._inode = -1  # a file system may give the same number again, or the next one
    listener.remove()
    assert path.exists()
