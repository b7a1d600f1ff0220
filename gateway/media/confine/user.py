"""From root to somebody who owns nothing.

A worker of a gateway that runs as root becomes the configured user, without groups. One that does not run as root stays
who it is. Capabilities go in both cases.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
from contextlib import suppress
from pathlib import Path

from gateway.media.confine.kernel import PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, call, prctl

# linux/capability.h. Without CAP_KILL a root parent could not end a worker that is somebody else.
_NEEDED = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
_CAPABILITY_VERSION_3 = 0x2008_0522
# The kernel's own number for nobody, where no file of users names one.
_NOBODY = ("nobody", 65534)


class UnknownUser(Exception):
    """The configured user is not there."""


def resolve(name: str) -> tuple[int, int]:
    """User and group number of a name, or of ``uid`` or ``uid:gid``. Raises UnknownUser."""
    uid, _, gid = name.partition(":")
    if uid.isdecimal() and (not gid or gid.isdecimal()):
        return int(uid), int(gid or uid)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        if name == _NOBODY[0]:
            return _NOBODY[1], _NOBODY[1]
        raise UnknownUser(f"media.sandbox_user: there is no user {name!r} here") from None
    return entry.pw_uid, entry.pw_gid


def obstacle() -> str | None:
    """Why a root process could not become somebody else; ``None`` where it could, or is not root."""
    if os.geteuid() != 0:
        return None
    held = _effective_capabilities()
    lacking = [name for name, bit in _NEEDED.items() if not held >> bit & 1]
    return f"root without {', '.join(lacking)}" if lacking else None


def describe(uid: int) -> str:
    """Who a worker is."""
    return f"runs as user {uid}" if os.geteuid() == 0 else f"runs as user {os.geteuid()}, as the gateway does"


def become(name: str) -> str:
    """Become the user and drop all capabilities, the latter in any case; who it is now. Raises OSError, UnknownUser."""
    uid, gid = resolve(name)
    hindrance = obstacle()
    told = describe(uid)
    try:
        if os.geteuid() == 0 and hindrance is None:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
    finally:
        _drop_capabilities()
    if os.geteuid() == 0:
        raise OSError(0, hindrance or "media.sandbox_user is root")
    return told


def _effective_capabilities() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("CapEff:")[2].split()[0], 16)


def _drop_capabilities() -> None:
    with suppress(OSError):  # Linux before 4.3
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    nothing = bytes(24)
    call("capset", ctypes.create_string_buffer(header, 8), ctypes.create_string_buffer(nothing, 24))
