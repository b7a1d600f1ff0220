"""Moving here works as the page says: its configurations are right, start, and answer the client that it shows.

Addresses, ports and files are this test's own; everything else is used as it is printed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

import httpx
import pytest

from gateway.config.sources import OTHER_NAMES, load_settings
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.tenant_keys import TENANT_KEYS
from tests.certificates import self_signed
from tests.cli.command import run
from tests.docs.blocks import DOCS, blocks
from tests.docs.named_settings import unknown_settings
from tests.e2e.processes import Engine, Gateway, until
from tests.simulator import drawn
from tests.simulator.process import MODEL
from tests.state.redis_server import RedisServer, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PAGE = (DOCS / "migration.md").read_text(encoding="utf-8")
AFTER = {
    block.name: block.text for block in blocks("migration.md") if block.name and not block.name.startswith("before")
}
SITES = ("litellm", "router", "nginx")
PHOTOGRAPH = drawn.data_url(drawn.png(640, 480), "image/png")
PASSWORD = "of-redis"  # of this test's own server

# Every flag of sglang-router 0.3.2 and of vllm-router 0.1.17, as their own parsers list them.
ROUTER_FLAGS = re.findall(
    r"[\w-]+",
    """
host port worker-urls policy prefill-policy decode-policy cache-threshold balance-abs-threshold balance-rel-threshold
bucket-adjust-interval-secs eviction-interval-secs max-tree-size max-idle-secs assignment-mode max-payload-size
dp-aware enable-igw mini-lb pd-disaggregation prefill decode worker-startup-timeout-secs worker-startup-check-interval
log-dir log-level service-discovery selector service-discovery-port service-discovery-namespace prefill-selector
decode-selector prometheus-port prometheus-host prometheus-duration-buckets request-id-headers request-timeout-secs
shutdown-grace-period-secs cors-allowed-origins max-concurrent-requests queue-size queue-timeout-secs
rate-limit-tokens-per-second retry-max-retries retry-initial-backoff-ms retry-max-backoff-ms retry-backoff-multiplier
retry-jitter-factor disable-retries cb-failure-threshold cb-success-threshold cb-timeout-duration-secs
cb-window-duration-secs disable-circuit-breaker health-failure-threshold health-success-threshold
health-check-timeout-secs health-check-interval-secs health-check-endpoint disable-health-check model-path
tokenizer-path chat-template tokenizer-cache-enable-l0 tokenizer-cache-l0-max-entries tokenizer-cache-enable-l1
tokenizer-cache-l1-max-memory reasoning-parser tool-call-parser mcp-config-path backend history-backend
oracle-wallet-path oracle-tns-alias oracle-connect-descriptor oracle-username oracle-password oracle-pool-min
oracle-pool-max oracle-pool-timeout-secs postgres-db-url postgres-pool-max redis-url redis-pool-max
redis-retention-days client-cert-path client-key-path ca-cert-paths tls-cert-path tls-key-path enable-trace
otlp-traces-endpoint api-key control-plane-api-keys control-plane-audit-enabled jwt-issuer jwt-audience jwt-jwks-uri
jwt-role-mapping enable-program-scheduling program-scheduling-config-json router-temperature kv-penalty-host
kv-penalty-external kv-penalty-disk kv-aware-session-affinity-ttl-secs kv-event-source kv-event-replay-source
kv-event-block-size kv-event-model pd-kv-events vllm-pd-disaggregation wasm-middleware wasm-middleware-sha256
wasm-middleware-route intra-node-data-parallel-size vllm-discovery-address kv-connector
""",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands for the page's addresses and files."""
    folder = tmp_path_factory.mktemp("world")
    papers = self_signed(folder, "tls")
    with ExitStack() as stack:
        redis: RedisServer = stack.enter_context(running("--requirepass", PASSWORD, password=PASSWORD))
        first, second = (stack.enter_context(Engine("--speed", "0")) for _ in range(2))
        yield {
            "http://gpu-1:8000": first.url, "http://gpu-2:8000": second.url, "redis://redis:6379": redis.url,
            "/etc/tls/tls.crt": str(papers.certificate), "/etc/tls/tls.key": str(papers.key),
        }  # fmt: skip


def in_this_world(text: str, world: dict[str, str]) -> str:
    for printed, real in world.items():
        text = text.replace(printed, real)
    return text


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest, world: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one section, in a folder of their own."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in AFTER.items():
        if name.startswith(f"{request.param}/"):
            place = folder / name.removeprefix(f"{request.param}/")
            place.parent.mkdir(exist_ok=True)
            place.write_text(in_this_world(text, world), encoding="utf-8")
    if request.param == "litellm":
        (folder / "redis-password").write_text(PASSWORD)
        config = folder / "gateway.yaml"
        config.write_text(
            config.read_text().replace("password_file: redis-password", f"password_file: {folder}/redis-password")
        )
    return folder


def test_the_configuration_is_right(site: Path) -> None:
    ran = run("check", "--config", str(site / "gateway.yaml"))
    assert ran.code == 0, ran.err
    assert "Configuration is valid" in ran.err


def test_the_same_client_is_answered(site: Path, tmp_path: Path) -> None:
    socket = tmp_path / "gateway.sock"
    environment = {"VLMGW_SERVER_UNIX_SOCKET": str(socket), "VLMGW_MEDIA_WORKERS": "1"}
    flags = ("--config", str(site / "gateway.yaml"), "--host", "127.0.0.1")
    with Gateway(*flags, environment=environment, socket=socket) as gateway:
        uses_tls = "tls_cert_file" in (site / "gateway.yaml").read_text()
        url = gateway.url.replace("http:", "https:") if uses_tls else gateway.url
        source = (
            AFTER["client.py"].replace("http://vlm-gateway:8080", url).replace("OpenAI(", "OpenAI(http_client=HTTP, ")
        )
        with (
            httpx.Client(verify=not uses_tls, trust_env=False, timeout=120) as http,
            redirect_stdout(io.StringIO()) as printed,
        ):
            exec(compile(source, "client.py", "exec"), {"PHOTOGRAPH": PHOTOGRAPH, "HTTP": http})
        assert "I see 1 image" in printed.getvalue()
        line = gateway.line(lambda line: line.get("event") == "exchange", "the exchange")
        assert (line["model"], line["status"]) == ("qwen-vl", 200)
        if (site / "redis-password").exists():
            until(lambda: gateway.metric("state_degraded") == 0, "a store that answers")
        if (site / "policies/acme.yaml").exists():
            assert line["tenant"] == "acme"


def test_every_flag_of_the_routers_has_its_line() -> None:
    lines = re.findall(r"^\| (`--.+) ?\|$", PAGE, re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    named = [flag for row in rows for flag in re.findall(r"`--([\w-]+)`", row[0])]
    assert sorted(set(named) - {"num_workers"}) == sorted(ROUTER_FLAGS)
    assert [row for row in rows if row[1] == "–" and not row[2].startswith("not needed because")] == []


def test_settings_and_keys_that_are_named_exist() -> None:
    assert unknown_settings(PAGE) == []
    named = set(re.findall(r"`(\w+): ", PAGE)) | set(re.findall(r"`(\w+)` of a policy", PAGE))
    ours = {"rates", "engine_fields", "mode", "queue_timeout_s", "priority", "weight"} & named
    assert ours <= {each.key for each in TENANT_KEYS} | RULES_BY_KEY.keys()
    assert set(re.findall(r"VLMGW_\w+", PAGE)) <= OTHER_NAMES


def test_the_settings_are_read_as_they_are_meant(site: Path) -> None:
    settings = load_settings(site / "gateway.yaml", environment={})
    assert len(settings.backends) == 2
    assert {model.alias_of for model in settings.models.values()} == {MODEL}
    assert settings.upstream.response_timeout_s == 600
    assert settings.server.host == "0.0.0.0"  # read, not listened on
