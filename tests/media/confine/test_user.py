from __future__ import annotations

import os
from typing import Any

import pytest

from gateway.media.confine import user


@pytest.mark.parametrize(
    ("name", "ids"), [("root", (0, 0)), ("65534", (65534, 65534)), ("12:34", (12, 34)), ("0", (0, 0))]
)
def test_names_and_numbers(name: str, ids: tuple[int, int]) -> None:
    assert user.resolve(name) == ids


def test_nobody_is_known_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user.resolve("nobody")[0] == 65534

    def no_users(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("pwd.getpwnam", no_users)
    assert user.resolve("nobody") == (65534, 65534)
    with pytest.raises(user.UnknownUser, match="'unheard-of'"):
        user.resolve("unheard-of")


def test_what_keeps_root_from_leaving_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(user, "_effective_capabilities", lambda: 1 << 6 | 1 << 7)
    assert user.obstacle() == "root without CAP_KILL"
    monkeypatch.setattr(user, "_effective_capabilities", lambda: 0b1110_0000)
    assert user.obstacle() is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(user, "_effective_capabilities", lambda: 0)
    assert user.obstacle() is None


@pytest.mark.slow
def test_nothing_of_root_is_left(in_child: Any) -> None:
    told, ids, groups, capabilities = in_child(
        """
        from pathlib import Path
        from gateway.media.confine import user
        told = user.become("65534")
        status = Path("/proc/self/status").read_text()
        held = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("CapEff", "CapPrm"))]
        tell([told, os.getresuid(), os.getgroups(), held])
        """
    )
    expected = 65534 if os.geteuid() == 0 else os.geteuid()
    assert ids == [expected] * 3
    assert told.startswith(f"runs as user {expected}")
    assert capabilities == [0, 0]
    if os.geteuid() == 0:
        assert groups == []


@pytest.mark.slow
def test_capabilities_go_even_where_the_user_stays(in_child: Any) -> None:
    reason, effective = in_child(
        """
        from pathlib import Path
        from gateway.media.confine import user
        os.geteuid = lambda: 0
        try:
            user.become("0")
            reason = None
        except OSError as error:
            reason = error.strerror
        tell([reason, Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]])
        """
    )
    assert reason is not None
    assert int(effective, 16) == 0
