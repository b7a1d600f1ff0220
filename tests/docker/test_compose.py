"""The compose file: its schema, what it must promise, and its own commands started, apart from ports and names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

from gateway import __version__
from gateway.config.settings import Settings
from gateway.config.sources import OTHER_NAMES, environment_name, leaf_paths, load_settings
from tests.docker.compose import COMPOSE, plain_document, seconds, services
from tests.docker.dockerfile import ROOT, shipped
from tests.e2e.processes import until
from tests.ports import free_port
from tests.redis_program import redis_program
from tests.simulator import drawn
from tests.simulator.process import MODEL, chat, image_part

SERVICES = services()
CONFIG = ROOT / "docker/config"
OURS = ("gateway", "engine-a", "engine-b")
RUNTIME = shipped()[1][-1]
DEADLINE_S = 90.0  # far above what two busy cores need for four starts
SETTINGS = load_settings(CONFIG / "gateway.yaml", environment={})


def published(name: str) -> list[tuple[str, int, int]]:
    """Address, port outside, port inside."""
    found = [entry.rsplit(":", 2) for entry in SERVICES[name].get("ports", [])]
    return [(address, int(outside), int(inside)) for address, outside, inside in found]


def test_it_fits_the_schema_of_compose() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert list(validator.iter_errors(plain_document())) == []
    broken = {"services": {"gateway": {**plain_document()["services"]["redis"], "read-only": True}}}
    assert not validator.is_valid(broken)


def test_without_a_profile_there_are_a_gateway_two_engines_and_redis() -> None:
    of_profile = {name: tuple(service.get("profiles", ())) for name, service in SERVICES.items()}
    assert {name for name, profiles in of_profile.items() if not profiles} == {*OURS, "redis"}
    assert {name for name, profiles in of_profile.items() if profiles == ("monitoring",)} == {
        "prometheus", "alertmanager", "grafana",
    }  # fmt: skip
    assert of_profile["vllm"] == ("vllm",)


def test_the_gateway_gets_longer_to_leave_than_it_takes() -> None:
    server = Settings().server
    grace_s = seconds(SERVICES["gateway"]["stop_grace_period"])
    assert grace_s > server.settle_s + server.drain_timeout_s + 10


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"vllm"}))
def test_every_service_is_locked_up(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert service.get("user", "1:1").split(":")[0] != "0"
    limits = service["deploy"]["resources"]["limits"]
    assert limits.keys() == {"cpus", "memory", "pids"}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_tells_how_it_is(name: str) -> None:
    if name == "gateway":
        assert "healthcheck" not in SERVICES[name]
        assert RUNTIME.last("HEALTHCHECK").text.startswith("CMD ")
    else:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_others_wait_until_what_they_need_is_well() -> None:
    needed = {name: service.get("depends_on", {}) for name, service in SERVICES.items()}
    assert needed["gateway"].keys() == {"redis", "engine-a", "engine-b"}
    assert all(entry == {"condition": "service_healthy"} for each in needed.values() for entry in each.values())


def test_ports_are_the_defaults_and_open_to_this_machine_alone() -> None:
    server = Settings().server
    assert [inside for _, _, inside in published("gateway")] == [server.port, server.admin_port]
    assert {address for name in SERVICES for address, _, _ in published(name)} == {"127.0.0.1"}
    assert all(outside == inside for name in SERVICES for _, outside, inside in published(name))


def test_our_image_is_built_and_never_pulled() -> None:
    for name in OURS:
        assert SERVICES[name]["pull_policy"] == "build"
        assert SERVICES[name]["image"] == f"vlm-gateway:{__version__}"
        assert (COMPOSE.parent / SERVICES[name]["build"]["context"] / SERVICES[name]["build"]["dockerfile"]).is_file()


def test_other_peoples_images_are_pinned() -> None:
    pinned = {name: SERVICES[name]["image"] for name in SERVICES.keys() - {*OURS, "vllm"}}
    assert [image for image in pinned.values() if not re.search(r":v?\d+\.\d+[^@]*@sha256:[0-9a-f]{64}$", image)] == []
    assert re.search(r":v\d+\.\d+\.\d+$", SERVICES["vllm"]["image"])


def test_every_variable_is_one_that_the_gateway_knows() -> None:
    known = {environment_name(path) for path in leaf_paths()} | OTHER_NAMES
    assert SERVICES["gateway"]["environment"].keys() - known == set()


def test_what_is_mounted_exists() -> None:
    volumes = plain_document()["volumes"]
    for service in SERVICES.values():
        for entry in service.get("volumes", ()):
            source = entry.split(":")[0]
            assert source in volumes or (COMPOSE.parent / source).exists(), entry


def test_the_gateway_reads_what_is_mounted_and_its_backends_are_the_engines() -> None:
    targets = {entry.split(":")[1] for entry in SERVICES["gateway"]["volumes"]}
    assert SETTINGS.policies in targets
    assert Path(RUNTIME.last("CMD").words[-1]).parent.as_posix() in targets
    ports = {name: SERVICES[name]["command"][SERVICES[name]["command"].index("--port") + 1] for name in OURS[1:]}
    assert [backend.url for backend in SETTINGS.backends] == [f"http://{name}:{port}" for name, port in ports.items()]
    caps = {SERVICES[name]["command"][SERVICES[name]["command"].index("--max-pixels") + 1] for name in OURS[1:]}
    assert {str(backend.max_pixels) for backend in SETTINGS.backends} == caps


def test_prometheus_and_grafana_look_where_things_are() -> None:
    prometheus = yaml.safe_load((CONFIG / "prometheus.yml").read_text(encoding="utf-8"))
    (gateway,) = [job for job in prometheus["scrape_configs"] if job["job_name"] == "vlm-gateway"]
    assert gateway["static_configs"][0]["targets"] == [f"gateway:{Settings().server.admin_port}"]
    mounted = dict(entry.split(":")[:2] for entry in SERVICES["prometheus"]["volumes"])
    assert mounted["../grafana/rules"] == "/etc/prometheus/rules"
    rules = {f"/etc/prometheus/rules/{path.name}" for path in (ROOT / "grafana/rules").glob("*.yaml")}
    assert set(prometheus["rule_files"]) == rules
    (alerting,) = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert alerting == f"alertmanager:{published('alertmanager')[0][2]}"
    shown = dict(entry.split(":")[:2] for entry in SERVICES["grafana"]["volumes"])
    provider = yaml.safe_load((ROOT / "grafana/provisioning/dashboards/vlm-gateway.yaml").read_text(encoding="utf-8"))
    assert shown["../grafana/dashboards"] == provider["providers"][0]["options"]["path"]
    assert SERVICES["grafana"]["environment"]["PROMETHEUS_URL"] == "http://prometheus:9090"


def test_alerts_reach_receivers_that_exist() -> None:
    document = yaml.safe_load((CONFIG / "alertmanager.yml").read_text(encoding="utf-8"))
    receivers = {receiver["name"] for receiver in document["receivers"]}
    routes = [document["route"], *document["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers
    alerts = yaml.safe_load((ROOT / "grafana/rules/alerts.yaml").read_text(encoding="utf-8"))
    severities = {rule["labels"]["severity"] for group in alerts["groups"] for rule in group["rules"]}
    matched = re.findall(r'severity = "(\w+)"', str(document))
    assert set(matched) == severities


# --- the very commands, started --------------------------------------------------------------------------------------


@contextmanager
def started(words: Sequence[str], **environment: str) -> Iterator[None]:
    """A service's command until the end, which it must come to by itself when it is told."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, env={**os.environ, **environment}, stdin=quiet, stdout=quiet)
    try:
        yield
        process.terminate()
        assert process.wait(timeout=DEADLINE_S) == 0, words
    finally:
        process.kill()
        process.wait()


def here(words: Sequence[str], **replaced: str) -> list[str]:
    """A command with other values for these flags, and our own program instead of the image's."""
    found = list(words)
    for flag, value in replaced.items():
        found[found.index(f"--{flag}") + 1] = value
    return found


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(300)  # four starts of the program, one after another on a busy machine
def test_the_services_work_together(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "gateway"]
    port, admin_port, redis_port = free_port(), free_port(), free_port()
    engines = {name: free_port() for name in OURS[1:]}
    text = (CONFIG / "gateway.yaml").read_text(encoding="utf-8").replace("//redis:6379", f"//127.0.0.1:{redis_port}")
    text = text.replace("/etc/vlm-gateway-policies", str(ROOT / "policies"))
    for name, engine_port in engines.items():
        text = text.replace(f"//{name}:8000", f"//127.0.0.1:{engine_port}")
    config = tmp_path / "gateway.yaml"
    config.write_text(text, encoding="utf-8")
    server = redis_program("redis-server")
    assert server is not None
    with ExitStack() as stack:
        command: list[Any] = [*SERVICES["redis"]["command"], "--port", str(redis_port), "--bind", "127.0.0.1"]
        redis = subprocess.Popen(command, executable=server, cwd=tmp_path, stdout=subprocess.DEVNULL)
        stack.callback(redis.wait)
        stack.callback(redis.terminate)
        for name, engine_port in engines.items():
            words = here(SERVICES[name]["command"], host="127.0.0.1", port=str(engine_port))
            stack.enter_context(started([*program, *words]))
        words = here(RUNTIME.last("CMD").words, config=str(config))
        settings = {"SERVER_PORT": str(port), "SERVER_ADMIN_PORT": str(admin_port), "SERVER_SETTLE_S": "0"}
        given = {f"VLMGW_{key}": value for key, value in settings.items()}
        stack.enter_context(started([*program, *words], **given))
        for engine_port in engines.values():
            until(partial(answers, f"http://127.0.0.1:{engine_port}/health"), "an engine", DEADLINE_S)
        until(lambda: answers(f"http://127.0.0.1:{admin_port}/readyz"), "a ready gateway", DEADLINE_S)
        metrics = f"http://127.0.0.1:{admin_port}/metrics"
        up = re.compile(r"^vlmgw_backend_up\{[^}]*\} 1\.0$", re.MULTILINE)
        until(
            lambda: len(up.findall(httpx.get(metrics, trust_env=False, timeout=30).text)) == 2,
            "both engines",
            DEADLINE_S,
        )
        models = f"http://127.0.0.1:{port}/v1/models"
        until(lambda: MODEL in httpx.get(models, trust_env=False, timeout=30).text, "what they serve", DEADLINE_S)
        body = chat("What is this?", image_part(drawn.data_url(drawn.photograph(1600, 1200))), max_tokens=4)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/chat/completions", json=body, trust_env=False, timeout=DEADLINE_S
        )
        assert answer.status_code == 200, answer.text
        assert "shrunk=1" in answer.headers["x-vlmgw-images"]
        until(
            lambda: "vlmgw_state_degraded 0" in httpx.get(metrics, trust_env=False, timeout=30).text,
            "Redis in use",
            DEADLINE_S,
        )
