"""Landlock: from here on no file can be opened, no TCP port reached, no process outside signalled or looked into.

A second wall behind the system call filter, kept by another part of the kernel. Sources: linux/landlock.h, and
Documentation/userspace-api/landlock.rst for what each ABI version knows. It binds the calling thread and those it
starts, so it must be closed while there is only one.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from gateway.media.confine.kernel import call

_CREATE_RULESET_VERSION = 1
# By ABI version: every right to files it knows (REFER from 2, TRUNCATE from 3, IOCTL_DEV from 5).
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK_FROM, _NETWORK_RIGHTS = 4, 0b11  # bind and connect TCP
_SCOPE_FROM, _SCOPES = 6, 0b11  # abstract UNIX sockets, signals


def abi_version() -> int:
    """Which Landlock the kernel has. Raises OSError where it has none or does not let us use it."""
    return call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)


def describe(version: int) -> str:
    """What it closes at this version."""
    closes = ["files"]
    closes += ["TCP"] if version >= _NETWORK_FROM else []
    closes += ["signals"] if version >= _SCOPE_FROM else []
    return f"ABI {version}: no {', '.join(closes)}"


def close() -> str:
    """Close it for this thread and its children; what it does. Needs no_new_privs. Raises OSError."""
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    if threads > 1:
        raise OSError(0, f"{threads - 1} threads were started before it could be closed")
    version = abi_version()
    attributes = ruleset_attributes(version)
    ruleset_fd = call(
        "landlock_create_ruleset", ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0
    )
    try:
        call("landlock_restrict_self", ruleset_fd, 0)
    finally:
        os.close(ruleset_fd)
    return describe(version)


def ruleset_attributes(version: int) -> bytes:
    """struct landlock_ruleset_attr: everything that this version can handle is handled, and no rule allows any."""
    files = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    fields = [files]
    fields += [_NETWORK_RIGHTS] if version >= _NETWORK_FROM else []
    fields += [_SCOPES] if version >= _SCOPE_FROM else []
    return struct.pack(f"={len(fields)}Q", *fields)
