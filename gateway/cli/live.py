"""``vlm-gateway doctor --live``: is the gateway on this machine alive? A container's probe, without curl in the image.

Decided here: where the admin port is (``--admin``, else the environment, else the file, else the defaults) and what its
answer means: exit code 0 for a live gateway, 1 for one that is not or does not answer, 2 for wrong usage. Not decided
here: what being alive is (``api.admin``). Runs every few seconds beside a gateway that wants the CPU, and so imports
neither the command line nor the settings: 0.14 CPU seconds where ``vlm-gateway version`` takes 1.4.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gateway.config.documents import SettingsProblems, read_document
from gateway.config.server import ServerSettings

ANSWER_S = 3.0
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  # where it listens, not we


def main(arguments: Sequence[str]) -> int:
    """Look, say what is wrong on standard error, return the exit code."""
    parser = argparse.ArgumentParser("vlm-gateway doctor --live", description="Whether the gateway here is alive.")
    parser.add_argument("--live", action="store_true", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--admin", help="address of the admin port, as http://127.0.0.1:9464")
    parser.add_argument("--config", type=Path, help="the gateway.yaml that it serves from")
    given = parser.parse_args(arguments)
    return look(given.admin, given.config, os.environ)


def look(admin: str | None, config: Path | None, environment: Mapping[str, str]) -> int:
    """The same of options that are known. Never raises for what the gateway does or the options say."""
    try:
        host, port = _place(admin, config, environment)
    except (SettingsProblems, ValueError) as error:
        return _say(str(error), 2)
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/livez")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return _say(f"no answer from the admin port at {host}:{port}: {str(error) or type(error).__name__}", 1)
    finally:
        connection.close()
    return 0 if status == http.client.OK else _say(f"not alive: /livez at {host}:{port} answers {status}", 1)


def _place(admin: str | None, config: Path | None, environment: Mapping[str, str]) -> tuple[str, int]:
    """Where the admin port is. Raises ValueError and SettingsProblems for what cannot be an address."""
    if admin is not None:
        told = urlsplit(admin if "//" in admin else f"//{admin}")
        if told.scheme not in ("", "http") or not told.hostname:
            raise ValueError(f"--admin: must be like http://127.0.0.1:9464, not {admin}")
        return told.hostname, told.port or ServerSettings().admin_port
    from_file = {} if config is None else _server(read_document(config))
    host, port = (
        environment.get(f"VLMGW_SERVER_{name.upper()}") or from_file.get(name) or default
        for name, default in (("admin_host", ServerSettings().admin_host), ("admin_port", ServerSettings().admin_port))
    )
    try:
        return _ANYWHERE.get(str(host), str(host)), int(str(port))
    except ValueError:
        raise ValueError(f"server.admin_port: must be a whole number, not {port}") from None


def _server(document: object) -> dict[object, object]:
    """The part ``server`` of gateway.yaml; what is wrong with it is for the gateway's own start to tell."""
    server = document.get("server") if isinstance(document, dict) else None
    return server if isinstance(server, dict) else {}


def _say(problem: str, code: int) -> int:
    print(problem, file=sys.stderr)  # noqa: T201  # the terminal's library is what this module does without
    return code
