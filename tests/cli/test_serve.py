"""``serve``: starting, reloading, leaving, and every way not to start."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from gateway.app import Listening
from gateway.cli.serve import tell
from gateway.config.settings import ServerSettings, Settings
from tests.cli.command import NOBODY, run, start
from tests.e2e.processes import Gateway, until, write_policies

pytestmark = pytest.mark.slow


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_it_says_where_it_serves_and_leaves_with_0() -> None:
    with Gateway("--backend", NOBODY, "--pool", "1") as gateway:
        serving = f"Serving 1 backend(s) on {gateway.url}, admin on port {gateway.admin.rsplit(':', 1)[1]}."
        until(lambda: serving in gateway.said, serving)
        assert httpx.get(f"{gateway.admin}/readyz?verbose", trust_env=False, timeout=30).text.endswith("ok\n")
        gateway.signal(signal.SIGTERM)
        assert gateway.wait() == 0
        assert gateway.line(lambda line: line.get("event") == "stopped", "the end")
        assert "Traceback" not in gateway.said


def test_a_backend_that_does_not_answer_is_told() -> None:
    with Gateway("--backend", NOBODY, "--pool", "1") as gateway:
        line = gateway.line(lambda line: line.get("event") == "backend_down", "the missing backend")
        assert (line["level"], line["url"]) == ("warning", NOBODY)


def test_an_interrupt_is_a_drain_too() -> None:
    with Gateway("--backend", NOBODY, "--pool", "1") as gateway:
        gateway.signal(signal.SIGINT)
        assert gateway.wait() == 0


def test_a_hangup_reloads_and_a_bad_file_changes_nothing(tmp_path: Path) -> None:
    policies = write_policies(tmp_path / "policies", default="rules: {max_images: 3}")
    config = tmp_path / "gateway.yaml"
    config.write_text(f"backends: [{{url: '{NOBODY}'}}]\npolicies: {policies}\nserver: {{watch_interval_s: 0}}\n")
    with Gateway("--config", str(config), "--pool", "1") as gateway:

        def reload(number: int) -> dict[str, object]:
            gateway.signal(signal.SIGHUP)
            until(lambda: len(gateway.lines("reload")) == number, "the reload's line")
            return gateway.lines("reload")[-1]

        write_policies(policies, default="rules: {max_image: 3}")
        bad_policies = reload(1)
        assert bad_policies["ok"] is False
        assert "did you mean max_images?" in str(bad_policies["problems"])
        assert gateway.metric("config_last_reload_successful") == 0
        write_policies(policies, default="rules: {max_images: 4}")
        assert reload(2)["ok"] is True
        assert gateway.metric("config_last_reload_successful") == 1
        config.write_text("backends: [{ulr: x}]", encoding="utf-8")
        bad_config = reload(3)
        assert bad_config["ok"] is False
        assert "did you mean url?" in str(bad_config["problems"])
        assert httpx.get(f"{gateway.url}/health", trust_env=False, timeout=30).status_code == 200


def test_a_changed_file_is_reloaded_without_being_told(tmp_path: Path) -> None:
    policies = write_policies(tmp_path / "policies", default="rules: {max_images: 3}")
    config = tmp_path / "gateway.yaml"
    config.write_text(f"backends: [{{url: '{NOBODY}'}}]\npolicies: {policies}\nserver: {{watch_interval_s: 0.05}}\n")
    with Gateway("--config", str(config), "--pool", "1") as gateway:
        write_policies(policies, default="rules: {max_image: 33}")
        line = gateway.line(lambda line: line.get("event") == "reload", "the reload's line")
        assert line["ok"] is False
        write_policies(policies, default="rules: {max_images: 333}")
        gateway.line(lambda line: line.get("event") == "reload" and line["ok"] is True, "the next reload's line")


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (ServerSettings(), "http://127.0.0.1:4711"),
        (ServerSettings(host="::1"), "http://[::1]:4711"),
        (ServerSettings(tls_cert_file="cert.pem"), "https://127.0.0.1:4711"),
        (ServerSettings(unix_socket="/run/g.sock"), "http://127.0.0.1:4711 and Unix socket /run/g.sock"),
        (ServerSettings(unix_socket="/run/g.sock", tcp=False), "Unix socket /run/g.sock"),
    ],
)
def test_where_requests_are_served_is_said_as_it_is(
    server: ServerSettings, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(replace(Settings(), server=server), Listening(4711, 9464))
    assert capsys.readouterr().err == f"Serving 0 backend(s) on {said}, admin on port 9464.\n"


def test_settings_come_from_flags_before_environment_before_file(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    text = (
        f"backends: [{{url: '{NOBODY}'}}]\nserver: {{host: 0.0.0.0}}\nlog: {{level: warning}}\nmedia: {{workers: 7}}\n"
    )
    config.write_text(text, encoding="utf-8")
    environment = {"VLMGW_LOG_LEVEL": "info", "VLMGW_MEDIA_WORKERS": "3"}
    arguments = ("--config", str(config), "--host", "127.0.0.1", "--pool", "1")
    with Gateway(*arguments, environment=environment) as gateway:
        told = httpx.get(f"{gateway.admin}/-/config", trust_env=False, timeout=30).json()
    assert told["server"]["host"] == "127.0.0.1"
    assert told["log"]["level"] == "info"
    assert told["media"]["workers"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "No backend: name one with --backend URL"),
        (["--backend", "nonsense"], "must be an http:// or https:// URL"),
        (["--backend", NOBODY, "--backend", NOBODY], "127.0.0.1:9 is given twice"),
        (["--backend", NOBODY, "--port", "99999"], "between 0 and 65535"),
        (["--backend", NOBODY, "--max-pixels", "much"], "whole number (pixels)"),
        (["--max-pixels", "12"], "--max-pixels belongs to --backend"),
        (["--backend", NOBODY, "--config", "no-such-file.yaml"], "does not exist"),
        (["--backend", NOBODY, "--policies", "no-such-folder"], "does not exist"),
    ],
)
def test_unusable_settings_exit_with_2_and_say_why(arguments: list[str], said: str) -> None:
    ran = run("serve", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())


def test_unusable_policies_and_files_exit_with_2(tmp_path: Path) -> None:
    policies = write_policies(tmp_path / "policies", default="rules: {max_image: 3}", other="tenant: [")
    ran = start("serve", "--backend", NOBODY, "--policies", str(policies))
    assert ran.code == 2
    assert "did you mean max_images?" in ran.err
    assert "other.yaml" in ran.err
    config = tmp_path / "gateway.yaml"
    config.write_text("models: {m: {checkpoint: nothing}}", encoding="utf-8")
    ran = start("serve", "--backend", NOBODY, "--config", str(config))
    assert ran.code == 2
    assert "models.m.checkpoint" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("flag", ["--port", "--admin-port"])
def test_a_taken_port_exits_with_1(taken_port: int, flag: str) -> None:
    ports = {"--port": "0", "--admin-port": "0", flag: str(taken_port)}
    words = [word for pair in ports.items() for word in pair]
    ran = start("serve", "--backend", NOBODY, "--pool", "1", *words)
    assert ran.code == 1
    assert "Cannot listen" in ran.err
    assert flag in ran.err
    assert "Traceback" not in ran.err
