"""The container of the overlay `redis` as a process: its command, its folders, a real Redis with TLS and ACL users."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.certificates import make_authority
from tests.docker.manifests import documents, helm_answers, kustomized
from tests.docker.pod import KEYS, Pod, Running
from tests.e2e.processes import until
from tests.simulator.process import MODEL, SimulatorProcess
from tests.state import redis_server

# Free ports of the loopback device, and no waiting for load balancers.
_HERE = {
    "VLMGW_SERVER_HOST": "127.0.0.1",
    "VLMGW_SERVER_PORT": "0",
    "VLMGW_SERVER_ADMIN_HOST": "127.0.0.1",
    "VLMGW_SERVER_ADMIN_PORT": "0",
    "VLMGW_SERVER_SETTLE_S": "0",
    "VLMGW_SERVER_WATCH_INTERVAL_S": "0.1",
    "VLMGW_MEDIA_SPARE_WORKERS": "0",
}
_ACL = "on >first ~vlmgw:* &* +@all -@dangerous"


@dataclass(frozen=True, slots=True)
class Started:
    pod: Pod
    gateway: Running
    redis: redis_server.RedisServer
    tmp: Path


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    root, logs = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("logs")
    papers = make_authority(tmp_path_factory.mktemp("papers"), "server")
    with redis_server.running("--tls-auth-clients", "no", tls=papers) as redis, SimulatorProcess() as engine:
        redis.ask("ACL", "SETUSER", "vlm-gateway", *_ACL.split())
        given = {
            ("Secret", "vlm-gateway"): KEYS,
            ("Secret", "vlm-gateway-redis"): {"password": "first"},
            ("ConfigMap", "vlm-gateway-redis-ca"): {"ca.crt": (papers / "ca.pem").read_text()},
        }
        pod = Pod(kustomized("redis"), root, given, {**_HERE, "VLMGW_REDIS_URL": redis.url})
        config = pod.data("ConfigMap", "vlm-gateway")["gateway.yaml"]
        assert config.count("http://vllm:8000") == 1
        pod.volumes["config"].swap({"gateway.yaml": config.replace("http://vllm:8000", engine.url)})
        tmp = Path(pod.below("/tmp"))
        pod.environment["TMPDIR"] = str(tmp)
        with Running(pod, logs) as gateway:
            until(lambda: _status(f"{gateway.admin}/readyz") == 200, "a ready container")
            yield Started(pod, gateway, redis, tmp)


def _status(url: str, **headers: str) -> int:
    try:
        return httpx.get(url, headers=headers, trust_env=False, timeout=30).status_code
    except httpx.TransportError:
        return 0


def test_probes_and_metrics_ask_for_no_token(started: Started) -> None:
    admin = started.gateway.admin
    assert [_status(admin + path) for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


def test_what_acts_asks_for_the_token_of_the_secret(started: Started) -> None:
    url = f"{started.gateway.admin}/-/config"
    assert _status(url) == 401
    assert _status(url, Authorization=f"Bearer {KEYS['admin-token']}") == 200
    told = httpx.get(url, headers={"Authorization": f"Bearer {KEYS['admin-token']}"}, trust_env=False, timeout=30).text
    assert KEYS["identity-secret"] not in told


def test_budgets_are_kept_in_redis_as_the_acl_user(started: Started) -> None:
    def degraded() -> bool:
        page = httpx.get(f"{started.gateway.admin}/metrics", trust_env=False, timeout=30).text
        found = re.search(r"^vlmgw_state_degraded (\S+)$", page, re.MULTILINE)
        return found is None or float(found[1]) != 0

    until(lambda: not degraded(), "a store that answers")
    assert b"user=vlm-gateway" in started.redis.ask("CLIENT", "LIST")


def test_workers_are_as_many_as_requested_cpus(started: Started) -> None:
    requested = kustomized("redis").container["resources"]["requests"]["cpu"]
    page = httpx.get(f"{started.gateway.admin}/metrics", trust_env=False, timeout=30).text
    assert re.search(rf"^vlmgw_pool_workers {float(requested)}$", page, re.MULTILINE)


def test_what_helm_test_runs_passes_here_and_fails_where_nobody_is(started: Started) -> None:
    text = helm_answers()["base"]["files"]["vlm-gateway/templates/tests/answers.yaml"]
    (container,) = next(documents(text))["spec"]["containers"]
    assert container["command"] == ["python3", "-c"]
    script, _ = container["args"]

    def ask(url: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, url]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    until(
        lambda: MODEL in httpx.get(f"{started.gateway.url}/v1/models", trust_env=False, timeout=30).text, "the engine"
    )
    passed = ask(started.gateway.url)
    assert passed.returncode == 0, passed.stderr
    assert f"/v1/models answers {MODEL}" in passed.stdout
    assert ask("http://127.0.0.1:9").returncode == 1


def test_a_swapped_config_map_is_taken_up_and_a_broken_one_is_not(started: Started) -> None:
    policies = started.pod.volumes["policies"]
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}

    def answered() -> int:
        asked = httpx.post(f"{started.gateway.url}/v1/chat/completions", json=body, trust_env=False, timeout=30)
        return asked.status_code

    assert answered() == 200
    policies.swap({"default.yaml": "rules: {max_prompt_tokens: 1}\n"})
    until(lambda: answered() == 400, "the stricter policy")
    policies.swap({"default.yaml": "rulez: {}\n"})
    page = f"{started.gateway.admin}/metrics"
    failed = re.compile(r"^vlmgw_config_last_reload_successful 0\.0$", re.MULTILINE)
    until(lambda: failed.search(httpx.get(page, trust_env=False, timeout=30).text), "the refused reload")
    assert answered() == 400
    policies.swap({"default.yaml": "default_task: chat\n"})
    until(lambda: answered() == 200, "the first policy")


def test_nothing_is_written_to_the_root_file_system_nor_to_dev_shm(started: Started) -> None:
    assert not list(started.tmp.iterdir())
    process = Path("/proc") / str(started.gateway.process.pid)
    for descriptor in (process / "fd").iterdir():
        try:
            leads, flags = str(descriptor.readlink()), (process / "fdinfo" / descriptor.name).read_text()
        except OSError:
            continue  # closed meanwhile
        found = re.search(r"^flags:\s*([0-7]+)$", flags, re.MULTILINE)
        writes = found is not None and int(found[1], 8) & os.O_ACCMODE != os.O_RDONLY
        is_file = (
            leads.startswith("/") and not leads.startswith(("/memfd:", "/dev/null")) and descriptor.name not in "12"
        )
        assert not (writes and is_file), leads
    assert "/dev/shm" not in (process / "maps").read_text()


def test_sigterm_drains_and_ends_well(started: Started) -> None:
    started.gateway.process.send_signal(signal.SIGTERM)
    until(lambda: started.gateway.process.poll() is not None, "the end")
    assert started.gateway.process.returncode == 0
