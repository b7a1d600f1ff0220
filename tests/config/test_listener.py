"""What is wrong with listeners' settings, told by name."""

from __future__ import annotations

import pytest

from gateway.config.listener import listener_problems, socket_mode
from gateway.config.settings import ServerSettings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (ServerSettings(tls_key_file="k.pem"), "tls_key_file: needs tls_cert_file"),
        (ServerSettings(tcp=False), "tcp: false leaves no listener"),
        (ServerSettings(unix_socket_mode="rw"), "unix_socket_mode: must be three octal digits"),
        (ServerSettings(via="a b"), "via: must be a host name"),
        (ServerSettings(cors_origins=("app.example",)), "cors_origins: must be scheme://host"),
        (ServerSettings(cors_origins=("https://a/b",)), "cors_origins: must be scheme://host"),
        (ServerSettings(cors_origins=("https://[a",)), "cors_origins: must be scheme://host"),
        (ServerSettings(cors_origins=("*",), cors_credentials=True), "cors_credentials: browsers take no *"),
    ],
)
def test_a_problem_is_told_with_its_setting(settings: ServerSettings, problem: str) -> None:
    assert [line for line in listener_problems(settings) if problem in line], listener_problems(settings)


def test_defaults_and_whole_sets_are_right() -> None:
    whole = ServerSettings(
        tls_cert_file="c.pem", tls_key_file="k.pem", unix_socket="/run/g.sock", unix_socket_mode="600", tcp=False,
        via="gw-1", cors_origins=("https://a.example:8443", "null"),
    )  # fmt: skip
    assert listener_problems(ServerSettings()) == listener_problems(whole) == []


def test_modes_are_octal() -> None:
    assert (socket_mode("0660"), socket_mode("600")) == (0o660, 0o600)
