"""What is told of a failure: the system's words, none of those that could not be read."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp.http_exceptions import TransferEncodingError

from gateway.upstream.transport.telling import told


def chained(cause: Exception) -> Exception:
    try:
        raise aiohttp.ClientPayloadError("secret") from cause
    except aiohttp.ClientError as error:
        return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionResetError(104, "reset by peer"), "ConnectionResetError: [Errno 104] reset by peer"),
        (aiohttp.ServerDisconnectedError("secret"), "ServerDisconnectedError"),
        (chained(TransferEncodingError("secret")), "ClientPayloadError (TransferEncodingError)"),
        (chained(OSError(5, "no")), "ClientPayloadError (OSError: [Errno 5] no)"),
    ],
)  # fmt: skip
def test_only_the_system_is_quoted(error: Exception, text: str) -> None:
    assert told(error) == text
