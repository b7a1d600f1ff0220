"""No secret that an operator configures comes out again: each is a canary here, and every output is searched.

A real gateway with all of them at once: in its file, in the environment, in mounted files. Whatever can go wrong does,
since failures quote what they failed on. Words of clients are another matter (``tests/app/test_secrets.py``).
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from gateway.api.auth import hash_key
from gateway.config.backends import BackendConfig
from gateway.config.sources import environment_name, leaf_paths
from tests.certificates import self_signed
from tests.cli.command import NOBODY, run
from tests.e2e.processes import Engine, Gateway, until
from tests.simulator import drawn
from tests.simulator.process import chat, image_part
from tests.state.redis_server import RedisServer, running

# All that can go wrong once goes wrong in one fixture.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECRETS = {
    name: f"Canary-{name}-x7Qz"
    for name in (
        "identity", "redis-file", "redis-url", "redis-password", "sentinel", "cache", "collector", "admin", "backend",
        "found", "dead", "service-account", "split-token", "jwks", "client", "shown",
    )
}  # fmt: skip
PATH = "/v1/chat/completions"
PICTURE = image_part(drawn.data_url(drawn.png(448, 448), "image/png"))


class Echo:
    """A server that refuses everything and repeats what it was sent, as a debugging proxy would."""

    def __enter__(self) -> Echo:
        heard = self.heard = bytearray()

        class Handler(BaseHTTPRequestHandler):
            def refuse(self) -> None:
                said = str(self.headers)
                heard.extend(said.encode())
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                body = json.dumps({"message": "denied", "sent": said}).encode()
                self.send_response(403, "denied")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(body)

            do_GET = do_POST = refuse  # noqa: N815  # the library's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the library names it
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(slots=True)
class Site:
    """What was said, by who said it, and where secrets belong: that they were used there."""

    said: dict[str, str] = field(default_factory=dict)
    used: dict[str, bool] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)


def pem_words(file: Path) -> list[str]:
    """The lines of a key between its first and its last."""
    return [line for line in file.read_text().splitlines() if not line.startswith("-")]


def configuration(folder: Path, redis: RedisServer, engine: Engine, echo: Echo) -> dict[str, Any]:
    papers = self_signed(folder, "server")
    ours = self_signed(folder, "ours")
    (folder / "token").write_text(SECRETS["service-account"])
    (folder / "split").write_text(f"{SECRETS['split-token']}\n{SECRETS['split-token']}")
    (folder / "password").write_text(SECRETS["redis-file"])
    (folder / "engines.yaml").write_text(f"- {{url: '{NOBODY}', name: found}}\n")
    public = ECAlgorithm.to_jwk(ISSUER_KEY.public_key(), as_dict=True)
    symmetric = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(SECRETS["jwks"].encode()).decode()}
    (folder / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k", "use": "sig"}, symmetric]}))
    policies = folder / "policies"
    policies.mkdir()
    hashed = hash_key(SECRETS["client"], SECRETS["identity"])
    (policies / "acme.yaml").write_text(f"tenant: acme\nkeys: ['{hashed}']\nrequests_in_flight: 9\n")
    return {
        "server": {
            "tls_cert_file": str(papers.certificate), "tls_key_file": str(papers.key), "watch_interval_s": 0,
            "unix_socket": str(folder / "gateway.sock"),
        },
        "backends": [
            {"url": engine.url, "name": "engine", "api_key": SECRETS["backend"]},
            {
                "url": NOBODY.replace("http:", "https:"), "name": "dead", "api_key": SECRETS["dead"],
                "tls_cert_file": str(ours.certificate), "tls_key_file": str(ours.key),
            },
        ],
        "sources": [
            {"url": "file:engines.yaml", "backend": {"api_key": SECRETS["found"]}},
            *(
                {
                    "url": f"kubernetes://prod/{name}", "api_server": echo.url, "token_file": str(folder / name),
                    "refresh_s": 0.05,
                }
                for name in ("token", "split")
            ),
        ],
        "policies": "policies",
        "media": {"workers": 1, "shared_cache_bytes": "8MiB"},
        "jwt": {"issuer": ISSUER, "audience": "gw", "jwks_file": str(folder / "jwks.json")},
        "redis": {"password_file": str(folder / "password"), "retry_s": 0.05},
        "tracing": {"otlp_endpoint": echo.url, "timeout_s": 0.2},
    }  # fmt: skip


ISSUER = "https://login.example"
ISSUER_KEY = ec.generate_private_key(ec.SECP256R1())


def environment(redis: RedisServer) -> dict[str, str]:
    def address(password: str) -> str:
        return redis.url.replace("//", f"//:{quote(password)}@")

    return {
        "VLMGW_IDENTITY_SECRET": SECRETS["identity"],
        "VLMGW_REDIS_URL": address(SECRETS["redis-url"]),  # the file overrides it
        "VLMGW_REDIS_SENTINEL_PASSWORD": SECRETS["sentinel"],
        "VLMGW_MEDIA_SHARED_CACHE_URL": address(SECRETS["cache"]),  # a wrong one
        "VLMGW_TRACING_HEADERS": f"Authorization=Basic%20{SECRETS['collector']}",
        "VLMGW_ADMIN_TOKEN": SECRETS["admin"],
    }


def token(**claims: Any) -> str:
    body = {"iss": ISSUER, "aud": "gw", "exp": time.time() + 600, "tenant": "acme", "note": SECRETS["client"], **claims}
    return jwt.encode(body, ISSUER_KEY, "ES256", {"kid": "k"})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Everything said while all of it goes wrong once."""
    folder = tmp_path_factory.mktemp("secrets")
    found = Site()
    with ExitStack() as stack:
        redis = stack.enter_context(running("--requirepass", SECRETS["redis-file"], password=SECRETS["redis-file"]))
        engine = stack.enter_context(Engine("--speed", "0", "--api-key", SECRETS["backend"]))
        echo = stack.enter_context(Echo())
        config = folder / "gateway.yaml"
        config.write_text(json.dumps(configuration(folder, redis, engine, echo)))
        given = environment(redis)
        gateway = Gateway("--config", str(config), environment=given, socket=folder / "gateway.sock")
        with gateway:
            client = httpx.Client(verify=False, trust_env=False, timeout=120)  # its own certificate
            with client:
                speak(found, client, gateway, engine)
                administrate(found, client, gateway, config)
                until(lambda: SECRETS["collector"].encode() in echo.heard, "a trace")
                until(lambda: SECRETS["service-account"].encode() in echo.heard, "a question to the cluster")
                until(lambda: len(gateway.lines("source_failed")) >= 2, "both sources' failures")
                # A busy machine may be slower than Redis's deadline for a moment.
                until(lambda: gateway.metric("state_degraded") == 0, "a store that answers")
                found.used["redis"] = redis.calls("auth") + redis.calls("hello") > 0
                processes = [Path("/proc") / str(pid) / "cmdline" for pid in (gateway.pid, *gateway.workers())]
                found.said["command lines"] = "".join(each.read_bytes().decode() for each in processes)
                redis.kill()
                until(lambda: gateway.metric("state_degraded") == 1, "a lost store")
                ask(found, client, gateway, chat("And now?"))
        found.said["log"] = "\n".join(json.dumps(line, ensure_ascii=False) for line in gateway._lines)
        found.said["standard error"] = gateway.said
        records = engine.requests()
        sent = {value for each in records for name, value in each["headers"] if name.lower() == "authorization"}
        found.used["backend"] = sent == {f"Bearer {SECRETS['backend']}"}
        found.said["engine"] = json.dumps(records).replace(SECRETS["backend"], "")
        command_lines(found, folder, config, given)
        found.keys = [line for name in ("server", "ours") for line in pem_words(folder / f"{name}.key")]
    return found


def ask(
    found: Site, client: httpx.Client, gateway: Gateway, body: object, key: str = SECRETS["client"], path: str = PATH
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = gateway.url.replace("http:", "https:") + path
    answer = client.post(
        url, content=content, headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    )
    found.statuses.add(answer.status_code)
    found.said["answers"] = found.said.get("answers", "") + f"{answer.status_code} {answer.headers} {answer.text}\n"


def speak(found: Site, client: httpx.Client, gateway: Gateway, engine: Engine) -> None:
    """Requests that go well and requests that do not."""
    for body in (
        chat("Hello"),
        chat("What is this?", PICTURE),
        chat("Hello", stream=True),
        b'{"model": ',
        chat(model="no"),
    ):
        ask(found, client, gateway, body)
    for key in (token(), token(exp=1), token(aud="other"), token(tenant="nobody"), f"{SECRETS['client']}-wrong"):
        ask(found, client, gateway, chat("Hello"), key)
    for kind in ("reset_before_status", "not_http", "half_head", "reset_mid_stream", "error_mid_stream"):
        engine.fault(kind)
        ask(found, client, gateway, chat("Hello", stream="mid" in kind))
    ask(found, client, gateway, chat("Hello", image_part("https://127.0.0.1/secret.png")))
    ask(found, client, gateway, b"", path="/metrics")
    ask(found, client, gateway, chat("Hello"), path="/v1/estimate")


def administrate(found: Site, client: httpx.Client, gateway: Gateway, config: Path) -> None:
    """The admin port, its page, reloads that are refused."""
    told: list[str] = []

    def look(method: str, path: str, *, key: str | None = SECRETS["admin"], **fields: Any) -> int:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        answer = client.request(method, gateway.admin + path, headers=headers, **fields)
        told.append(f"{answer.status_code} {answer.headers} {answer.text}")
        return answer.status_code

    for path in (
        "/-/config",
        "/readyz?verbose",
        "/livez?verbose",
        "/metrics",
        "/ui/",
        "/ui/api/choices",
        "/ui/api/policy?tenant=acme",
    ):
        assert look("GET", path) == 200, told[-1]
    for path in ("/-/config", "/-/reload", "/-/explain", "/ui/api/choices"):
        look("POST" if path != "/ui/api/choices" else "GET", path, key="wrong")
        look("GET", path, key=None)
    assert look("POST", "/-/explain", json=chat("Hello", PICTURE)) == 200
    assert look("POST", "/ui/api/check", content=f"tenant: acme\nkeys: [{SECRETS['shown']}]\n") in {200, 400}
    shown = run("top", "--once", "--interval", "0.05", "--admin", gateway.admin, "--token", SECRETS["admin"])
    assert shown.code == 0, shown.err
    told.append(shown.out + shown.err)
    with client.stream(
        "GET", f"{gateway.admin}/ui/api/live", headers={"Authorization": f"Bearer {SECRETS['admin']}"}
    ) as live:
        told.append(next(live.iter_text()))
    whole = config.read_text()
    assert look("POST", "/-/reload") == 200
    refused = 0
    for broken in spoilt(json.loads(whole)):  # some are right again by what the environment says
        config.write_text(broken)
        refused += look("POST", "/-/reload") == 422
    assert refused > 4
    config.write_text(whole)
    assert look("POST", "/-/reload") == 200
    found.said["admin port"] = "\n".join(told)


def spoilt(whole: dict[str, Any]) -> list[str]:
    """Configurations with a secret where something is wrong: another type, a missing quote, a letter too many."""
    shown = SECRETS["shown"]
    return [
        json.dumps({**whole, "identity": {"secret": [shown]}}),
        json.dumps({**whole, "identity": {"secret": {shown: shown}}}),
        json.dumps({**whole, "backends": [{"url": f"http://user:{shown}@h:1"}, {"url": f"http://user:{shown}/x@h"}]}),
        json.dumps({**whole, "backends": [{"url": "http://h:1", "api_key": f"{shown}\u00e4"}]}),
        json.dumps({**whole, "redis": {"url": f"redis://:{shown}@h:x"}}),
        json.dumps({**whole, "tracing": {"otlp_endpoint": "http://h:1", "headers": shown}}),
        json.dumps({**whole, "tracing": {"otlp_endpoint": f"http://u:{shown}@h:1"}}),
        json.dumps({**whole, "jwt": {"issuer": "i", "audience": "a", "jwks_url": f"https://u:{shown}@h/jwks"}}),
        f"identity: {{secret: '{shown}}}\nbackends: [",
    ]


def command_lines(found: Site, folder: Path, config: Path, given: dict[str, str]) -> None:
    """What the commands print of the same files: when they are right, and when they are not."""
    log = folder / "gateway.log"
    log.write_text(found.said["log"])
    bad = folder / "bad"
    bad.mkdir()
    (bad / "acme.yaml").write_text(f"tenant: acme\nkeys: ['{SECRETS['shown']}', {{hash: '{SECRETS['shown']}'}}]\n")
    wrong = {**given, "VLMGW_IDENTITY_SECRETS": SECRETS["shown"], "VLMGW_REDIS_URL": f"mysql://:{SECRETS['shown']}@h"}
    runs: list[tuple[dict[str, str], tuple[str, ...]]] = [
        (given, ("check", "--config", str(config))),
        (given, ("check", "--config", str(config), "--json")),
        (given, ("check", str(bad))),
        (given, ("doctor", "--config", str(config), "--json")),
        (given, ("hash-key", SECRETS["client"], "--config", str(config))),
        (given, ("logs", str(log), "--stages")),
        (wrong, ("serve", "--config", str(config))),
        (wrong, ("check", "--config", str(config))),
    ]
    told = []
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("VLMGW_"):
                patch.delenv(name)
        for variables, words in runs:
            with pytest.MonkeyPatch.context() as inner:
                for name, value in variables.items():
                    inner.setenv(name, value)
                ran = run(*words)
            told.append(f"$ {words[0]}: {ran.code}\n{ran.out}\n{ran.err}")
    for number, text in enumerate(spoilt(json.loads(config.read_text()))):
        place = folder / f"spoilt-{number}.yaml"
        place.write_text(text)
        ran = run("check", "--config", str(place))
        assert ran.code != 0, ran.out
        told.append(f"$ check spoilt {number}: {ran.code}\n{ran.out}\n{ran.err}")
    found.said["commands"] = "\n".join(told)


def spellings(secret: str) -> set[str]:
    """As it is, as base64 at each offset, as hex, in a URL."""
    encoded = {base64.b64encode(b"x" * shift + secret.encode()).decode()[4:-4] for shift in range(3)}
    return {secret, secret.encode().hex(), quote(secret, safe=""), *encoded}


def test_every_setting_that_is_secret_is_a_canary(tmp_path: Path) -> None:
    """A new one has to be put into this test."""
    given = {
        "identity.secret", "redis.url", "redis.password", "redis.sentinel_password", "media.shared_cache_url",
        "tracing.headers",
    }  # fmt: skip
    assert {path for path, setting in leaf_paths().items() if setting.metadata.get("secret")} == given
    assert {name for name, each in BackendConfig.__dataclass_fields__.items() if each.metadata["secret"]} == {"api_key"}
    # It cannot stand beside the file that the gateway above is given.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLMGW_REDIS_URL", "redis://127.0.0.1:9")
        patch.setenv(environment_name("redis.password"), SECRETS["redis-password"])
        ran = run("check", "--json")
    assert ran.json["settings"]["redis"]["password"] == "***"
    assert SECRETS["redis-password"] not in ran.out + ran.err


def test_secrets_were_used_where_they_belong(site: Site) -> None:
    assert site.used == {"redis": True, "backend": True}
    assert {200, 400, 401, 403, 404, 502} <= site.statuses


@pytest.mark.parametrize(
    "who", ["log", "standard error", "answers", "admin port", "command lines", "engine", "commands"]
)
def test_no_secret_is_told(site: Site, who: str) -> None:
    said = site.said[who]
    assert who == "standard error" or len(said) > 100
    for name, secret in SECRETS.items():
        for spelling in spellings(secret):
            at = said.find(spelling)
            assert at < 0, f"{name}: …{said[max(0, at - 200) : at + 80]}…"


def test_no_private_key_is_told(site: Site) -> None:
    assert len(site.keys) > 4
    assert [who for who, said in site.said.items() if any(line in said for line in site.keys)] == []
