"""Ports of this machine that nobody else is given while a test needs them."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """One on which nothing listens and which stays the caller's: the kernel gives it to nobody else from now on.

    It is bound and never listened on, until this process ends. Who names it may listen there nevertheless, again and
    again: Linux lets sockets with SO_REUSEADDR, which every server sets, share a port of which none listens yet.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        port: int = holder.getsockname()[1]
        holder.detach()
        return port
