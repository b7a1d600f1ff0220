"""What every rendering must keep to, by the numbers of the program itself: its settings, its ports, its metrics."""

from __future__ import annotations

import re
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from gateway.api.admin import LIVE_BEAT_S
from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.media import netguard
from tests.certificates import self_signed
from tests.cli.command import run
from tests.docker.dockerfile import shipped
from tests.docker.manifests import CHART, KUSTOMIZE, RENDERINGS, ROOT, Manifests, Object, rendering
from tests.docker.pod import KEYS, Given, Pod
from tests.grafana.expressions import parsed, selected
from tests.grafana.known import SERIES, TARGET, rules

# After draining: stopping workers, telling a collector, flushing the log.
_STOPPING_S = 10
_MIB = 1 << 20
# The event loop's process with its libraries and tables, and a spare worker that does nothing.
_PROGRAM_BYTES = 512 * _MIB
_SETTINGS = "backends: [{url: http://engine:8000, api_key: hush}]\nfetch: {enabled: false}\npolicies: policies\n"
_SETTINGS += "server: {settle_s: 10, drain_timeout_s: 300}\n"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """What READMEs tell people to make before they apply the manifests."""
    papers = self_signed(tmp_path_factory.mktemp("papers"), "authority")
    certificate, key = papers.certificate.read_text(), papers.key.read_text()
    return {
        ("Secret", "vlm-gateway"): KEYS,
        ("Secret", "vlm-gateway-redis"): {"password": "first"},
        ("ConfigMap", "vlm-gateway-redis-ca"): {"ca.crt": certificate},
        ("Secret", "eyes-tls"): {"tls.crt": certificate, "tls.key": key},
        ("Secret", "gateway-settings"): {"gateway.yaml": _SETTINGS},
    }


@pytest.fixture(params=RENDERINGS)
def manifests(request: pytest.FixtureRequest) -> Manifests:
    return rendering(request.param)


@pytest.fixture
def pod(manifests: Manifests, tmp_path: Path, given: Given) -> Pod:
    return Pod(manifests, tmp_path, given, {})


@pytest.fixture
def settings(pod: Pod) -> Settings:
    """As the container would read them."""
    return load_settings(Path(pod.command[-1]), environment=pod.environment)


def _replicas(manifests: Manifests) -> tuple[int, int]:
    """The fewest and the most."""
    for scaler in manifests.all("HorizontalPodAutoscaler"):
        return scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]
    for scaler in manifests.all("ScaledObject"):
        return scaler["spec"]["minReplicaCount"], scaler["spec"]["maxReplicaCount"]
    count = manifests.one("Deployment")["spec"]["replicas"]
    return count, count


def _bytes(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()  # type: ignore[union-attr]  # nothing else is written
    return int(number) * {"Mi": _MIB, "Gi": 1024 * _MIB}[unit]


def test_check_is_content_with_what_the_container_reads(
    pod: Pod, manifests: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in pod.environment.items():
        monkeypatch.setenv(name, value)
    ran = run("check", "--config", pod.command[-1])
    assert ran.code == 0, ran.err
    assert "Configuration is valid" in ran.err
    has_policies = "policies" in pod.volumes
    assert has_policies == (manifests.origin != "helm/other")


def test_the_program_itself_is_process_one(pod: Pod, manifests: Manifests) -> None:
    container = manifests.container
    assert (container["command"], container["args"][0]) == (["vlm-gateway"], "serve")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert container["image"] == f"vlm-gateway:{version}" or "@sha256:" in container["image"]
    assert manifests.pod["spec"]["enableServiceLinks"] is False
    assert "lifecycle" not in container


def test_the_container_is_what_the_image_is(manifests: Manifests) -> None:
    _, stages = shipped()
    image = stages[-1]
    container = manifests.container
    assert tuple(container["command"]) == image.last("ENTRYPOINT").words
    assert tuple(container["args"]) == image.last("CMD").words
    assert [str(each["containerPort"]) for each in container["ports"]] == list(image.last("EXPOSE").words)
    user, group = map(int, image.last("USER").text.split(":"))
    given = manifests.pod["spec"]["securityContext"]
    assert (given["runAsUser"], given["runAsGroup"], given["fsGroup"]) == (user, group, group)


def test_probes_ask_the_admin_port(manifests: Manifests, settings: Settings) -> None:
    container = manifests.container
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"http": settings.server.port, "admin": settings.server.admin_port}
    assert {settings.server.host, settings.server.admin_host} == {"0.0.0.0"}
    asked = {
        kind: (container[f"{kind}Probe"]["httpGet"]["path"], container[f"{kind}Probe"]["httpGet"]["port"])
        for kind in ("startup", "liveness", "readiness")
    }
    assert asked == {
        "startup": ("/readyz", "admin"),
        "liveness": ("/livez", "admin"),
        "readiness": ("/readyz", "admin"),
    }
    live = container["livenessProbe"]
    assert live["failureThreshold"] >= 3
    assert live["timeoutSeconds"] < LIVE_BEAT_S
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 30


def test_the_grace_period_outlasts_settling_and_draining(manifests: Manifests, settings: Settings) -> None:
    needed = settings.server.settle_s + settings.server.drain_timeout_s + _STOPPING_S
    assert manifests.pod["spec"]["terminationGracePeriodSeconds"] >= needed
    readiness = manifests.container["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] <= max(settings.server.settle_s, 1)


def test_a_roll_takes_no_pod_away_before_another_is_ready(manifests: Manifests) -> None:
    deployment = manifests.one("Deployment")["spec"]
    assert deployment["strategy"]["type"] == "RollingUpdate"
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    fewest, most = _replicas(manifests)
    assert 2 <= fewest <= most
    assert ("replicas" in deployment) == (fewest == most)


def test_a_node_can_be_drained(manifests: Manifests) -> None:
    for budget in manifests.all("PodDisruptionBudget"):
        assert 1 <= budget["spec"]["maxUnavailable"] < _replicas(manifests)[0]
        assert "minAvailable" not in budget["spec"]


def test_containers_have_no_rights(manifests: Manifests) -> None:
    pod = manifests.pod["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] >= 10000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert manifests.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {
        "configMap",
        "secret",
        "emptyDir",
        "persistentVolumeClaim",
    }  # of the Pod Security level `restricted`
    assert all("sizeLimit" in volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume)


def test_a_decoding_bomb_costs_a_worker_and_not_the_pod(manifests: Manifests, settings: Settings) -> None:
    resources = manifests.container["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    media = settings.media
    workers = int(resources["requests"]["cpu"])
    assert media.workers == workers
    caches = media.prepared_cache_bytes * 5 // 4 + settings.fetch.cache_bytes
    fetched = media.slab_bytes if settings.fetch.enabled else 0
    needed = _PROGRAM_BYTES + media.slab_bytes + fetched + caches + workers * media.worker_memory_bytes
    assert _bytes(resources["limits"]["memory"]) >= needed


def test_volumes_are_folders_that_follow_changes(manifests: Manifests) -> None:
    mounts = manifests.container["volumeMounts"]
    assert {each["name"] for each in mounts} == {each["name"] for each in manifests.pod["spec"]["volumes"]}
    assert all("subPath" not in each and "subPathExpr" not in each for each in mounts)
    assert all(each.get("readOnly") for each in mounts if each["name"] != "tmp")


def _selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def test_selectors_select_and_references_lead_somewhere(manifests: Manifests) -> None:
    deployment, labels = manifests.one("Deployment"), manifests.pod["metadata"]["labels"]
    ports = {each["name"] for each in manifests.container["ports"]}
    assert _selects(deployment["spec"]["selector"]["matchLabels"], labels)
    for service in manifests.all("Service"):
        assert _selects(service["spec"]["selector"], labels)
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= ports
    for each in [*manifests.all("PodDisruptionBudget"), *manifests.all("NetworkPolicy")]:
        selector = each["spec"].get("podSelector") or each["spec"]["selector"]
        assert _selects(selector["matchLabels"], labels)
    for spread in manifests.pod["spec"]["topologySpreadConstraints"]:
        assert _selects(spread["labelSelector"]["matchLabels"], labels)
    for scaler in [*manifests.all("HorizontalPodAutoscaler"), *manifests.all("ScaledObject")]:
        target = scaler["spec"]["scaleTargetRef"]
        assert target["name"] == deployment["metadata"]["name"]
        assert target.get("kind", "Deployment") == "Deployment"
    accounts = {each["metadata"]["name"] for each in manifests.all("ServiceAccount")} or {"default"}
    assert manifests.pod["spec"]["serviceAccountName"] in accounts


def test_prometheus_scrapes_pods_under_the_name_that_alerts_ask_for(manifests: Manifests) -> None:
    for monitor in manifests.all("ServiceMonitor"):
        chosen = [
            each
            for each in manifests.all("Service")
            if _selects(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
        ]
        (admin,) = chosen
        assert (admin["spec"]["clusterIP"], admin["spec"]["publishNotReadyAddresses"]) == ("None", True)
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {each["name"] for each in admin["spec"]["ports"]}
        job = admin["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        asked = {name for rule in rules("alerts.yaml") for name in re.findall(r'job="([^"]+)"', rule["expr"])}
        assert asked == {job}


def _known_names() -> dict[str, set[str]]:
    """Metric -> labels, recorded ones with those of what they are made of."""
    recorded = {each["record"]: {"images"} for each in rules("recording.yaml")}
    return {name: labels for name, (_, labels) in SERIES.items()} | recorded


def test_autoscalers_ask_for_metrics_that_there_are(manifests: Manifests) -> None:
    # What the Prometheus operator adds to every series of a Service's pods.
    added = {*TARGET, "namespace", "pod", "service", "container", "endpoint"}
    for scaler in manifests.all("ScaledObject"):
        for trigger in scaler["spec"]["triggers"]:
            if trigger["type"] == "prometheus":
                (asked,) = selected(parsed(trigger["metadata"]["query"]))
                assert asked.metric in _known_names()
                assert set(asked.matched) - {"__name__"} <= added
                assert float(trigger["metadata"]["threshold"]) == 0.7
    adapter = yaml.safe_load((KUSTOMIZE / "components" / "pool-pressure" / "prometheus-adapter.yaml").read_text())
    (rule,) = adapter["rules"]["custom"]
    (series,) = re.findall(r'__name__="([^"]+)"', rule["seriesQuery"])
    assert series in _known_names()
    for scaler in manifests.all("HorizontalPodAutoscaler"):
        metrics = {each["type"]: each for each in scaler["spec"]["metrics"]}
        assert metrics["Resource"]["resource"]["target"]["averageUtilization"] == 70
        if "Pods" in metrics:
            assert metrics["Pods"]["pods"]["metric"]["name"] == rule["name"]["as"]
            assert metrics["Pods"]["pods"]["target"]["averageValue"] == "700m"


def test_rules_come_with_what_records_them(manifests: Manifests) -> None:
    asks = manifests.all("ScaledObject") or [
        each for each in manifests.all("HorizontalPodAutoscaler") if len(each["spec"]["metrics"]) > 1
    ]
    assert not asks or manifests.all("PrometheusRule")


def _egress(manifests: Manifests) -> list[Object]:
    return [rule for each in manifests.all("NetworkPolicy") for rule in each["spec"].get("egress", [])]


def _ports(rules_: list[Object]) -> set[Any]:
    return {port["port"] for rule in rules_ for port in rule["ports"]}


def test_what_goes_out_is_what_settings_need(manifests: Manifests, settings: Settings) -> None:
    if not manifests.all("NetworkPolicy"):
        assert manifests.origin == "helm/other"
        return
    egress = _egress(manifests)
    assert all("ports" in rule for rule in egress)
    needed = {53} | {urlsplit(each.url).port for each in settings.backends}
    if settings.redis.url is not None:
        needed.add(urlsplit(settings.redis.url).port)
    assert needed <= _ports(egress)
    by_address = [rule for rule in egress if any(peer.get("ipBlock", {}).get("except") for peer in rule.get("to", []))]
    assert bool(by_address) == settings.fetch.enabled
    finds = any(each.url.startswith("kubernetes:") for each in settings.sources)
    if manifests.origin != "helm/tenants":  # its settings are in a Secret
        assert bool([rule for rule in egress if "to" not in rule]) == finds == bool(manifests.all("Role"))
        assert manifests.pod["spec"]["automountServiceAccountToken"] is finds


def test_images_come_from_public_addresses_and_from_nowhere_else() -> None:
    (rule,) = [each for each in _egress(rendering("kustomize/production")) if _ports([each]) == {80, 443}]
    blocks = {peer["ipBlock"]["cidr"]: set(peer["ipBlock"]["except"]) for peer in rule["to"]}
    assert blocks == {
        "0.0.0.0/0": {str(each) for each in netguard._CLOSED_V4},
        str(netguard._OPEN_V6): {str(each) for each in netguard._CLOSED_V6},
    }
    for cidr, closed in blocks.items():
        assert all(ip_network(each).subnet_of(ip_network(cidr)) for each in closed)  # type: ignore[arg-type]  # one version


def test_what_comes_in_is_requests_and_scrapes(manifests: Manifests) -> None:
    for policy in manifests.all("NetworkPolicy"):
        for rule in policy["spec"].get("ingress", []):
            (port,) = rule["ports"]
            assert port["port"] in {"http", "admin"}
            assert port["port"] == "http" or rule["from"]


def test_the_token_reads_endpoints_and_nothing_else(manifests: Manifests) -> None:
    assert not manifests.all("ClusterRole")
    for role in manifests.all("Role"):
        (rule,) = role["rules"]
        assert (rule["apiGroups"], rule["resources"]) == (["discovery.k8s.io"], ["endpointslices"])
        assert set(rule["verbs"]) == {"list", "watch"}
    for binding in manifests.all("RoleBinding"):
        (subject,) = binding["subjects"]
        assert subject["namespace"]  # an API server takes no account without one
        assert subject["name"] == manifests.pod["spec"]["serviceAccountName"]


def test_secrets_are_never_in_the_manifests(manifests: Manifests) -> None:
    by_reference = {each["name"] for each in manifests.container["env"] if "secretKeyRef" in each.get("valueFrom", {})}
    assert by_reference == {"VLMGW_ADMIN_TOKEN", "VLMGW_IDENTITY_SECRET"}
    assert bool(manifests.all("Secret")) == (manifests.origin == "helm/other")


def test_the_readmes_tell_what_must_be_there_before(given: Given) -> None:
    kustomize = (KUSTOMIZE / "README.md").read_text(encoding="utf-8")
    chart = (CHART / "README.md").read_text(encoding="utf-8")
    for kind, name in given:
        if name.startswith("vlm-gateway"):
            for text in (kustomize, chart):
                assert re.search(rf"create (secret generic|configmap) {name}\b", text), (kind, name)
