"""The probe of containers: where it asks, and what it makes of the answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gateway.cli.live import look, main
from tests.cli.command import NOBODY, run


class Admin(HTTPServer):
    """An admin port that answers as it is told."""

    status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the library's name
        assert isinstance(self.server, Admin)
        self.send_response(self.server.status if self.path == "/livez" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Say nothing."""


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    with Admin(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_live_gateway_is_0_and_one_that_is_not_is_1(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.status = 200
    assert main(["--live", "--admin", admin.url]) == 0
    assert look(admin.url.removeprefix("http://"), None, {}) == 0
    admin.status = 503
    assert main(["--live", "--admin", admin.url]) == 1
    assert "not alive: /livez at 127.0.0.1:" in capsys.readouterr().err


def test_the_environment_goes_before_the_file_and_the_file_before_the_defaults(admin: Admin, tmp_path: Path) -> None:
    admin.status = 200
    port = str(admin.server_port)
    file = tmp_path / "gateway.yaml"
    file.write_text(f"server: {{admin_host: 0.0.0.0, admin_port: {port}}}\nbackends: [nonsense]", encoding="utf-8")
    assert look(None, file, {}) == 0
    assert look(None, file, {"VLMGW_SERVER_ADMIN_PORT": "9"}) == 1
    file.write_text("server: {admin_port: 9}", encoding="utf-8")
    assert look(None, file, {"VLMGW_SERVER_ADMIN_PORT": port, "VLMGW_SERVER_ADMIN_HOST": "::ffff:127.0.0.1"}) == 0
    assert look(None, file, {"VLMGW_SERVER_ADMIN_PORT": port, "VLMGW_SERVER_ADMIN_HOST": "0.0.0.0"}) == 0


def test_without_a_word_it_asks_the_default_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("- no mapping", encoding="utf-8")
    look(None, file, {"VLMGW_SERVER_ADMIN_HOST": "127.255.255.254"})
    assert "127.255.255.254:9464" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--admin", "ftp://a"], "--admin: must be like http://127.0.0.1:9464"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml: cannot be read"),
    ],
)
def test_wrong_usage_is_2(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--live", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_port_that_is_no_number_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(None, None, {"VLMGW_SERVER_ADMIN_PORT": "many"}) == 2
    assert "server.admin_port: must be a whole number, not many" in capsys.readouterr().err


def test_the_command_is_the_probe_and_imports_little(admin: Admin) -> None:
    admin.status = 200
    heavy = ("typer", "rich", "httpx", "aiohttp", "asyncio", "gateway.config.settings")
    script = (
        f"import sys; sys.argv = ['vlm-gateway', 'doctor', '--live', '--admin', {admin.url!r}]\n"
        "from gateway.cli import main\n"
        "try:\n    main()\n"
        f"except SystemExit as end:\n    print(end.code, sorted({{*{heavy!r}}} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "0 []"


def test_doctor_offers_it_among_its_flags(admin: Admin) -> None:
    admin.status = 200
    assert run("doctor", "--live", "--admin", admin.url).code == 0
    assert run("doctor", "--live", "--admin", NOBODY).code == 1
