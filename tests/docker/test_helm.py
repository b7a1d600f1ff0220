"""The chart: linted and rendered with every file of values, strict about values, and one truth with kustomize."""

from __future__ import annotations

import copy
import json
import tarfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.docker.manifests import (
    CHART,
    CUSTOM_KINDS,
    NAMESPACE,
    OVERLAYS,
    ROOT,
    VALUES,
    Manifests,
    Object,
    ask_helm,
    documents,
    helm_answers,
    helmed,
    kustomized,
    packaged,
)
from tests.docker.schemas import VERSIONS, problems

_HELM_LABELS = {"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}


def test_lint_has_nothing_to_say() -> None:
    told = {name: answer["lint"] for name, answer in helm_answers().items() if answer["lint"]}
    assert not told


def _comparable(manifests: Manifests) -> dict[tuple[str, str], Object]:
    """By kind and name, without what only Helm says of itself, and with documents in ConfigMaps read."""
    found = {}
    for each in manifests.objects:
        plain = copy.deepcopy(each)
        metadata = plain["metadata"]
        metadata.pop("namespace", None)
        metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key not in _HELM_LABELS}
        for subject in plain.get("subjects", []):
            subject.pop("namespace", None)
        if plain["kind"] == "ConfigMap":
            plain["data"] = {
                name: (json.loads if name.endswith(".json") else yaml.safe_load)(text)
                for name, text in plain["data"].items()
            }
        if plain["kind"] in {"Deployment", "ScaledObject"}:
            _order(plain)
        found[plain["kind"], metadata["name"]] = plain
    return found


def _order(each: Object) -> None:
    """Lists whose order means nothing, by name; the namespace that only Helm knows, left out of KEDA's query."""
    if each["kind"] == "ScaledObject":
        for trigger in each["spec"]["triggers"]:
            query = trigger["metadata"].get("query", "")
            trigger["metadata"]["query"] = query.replace(f'namespace="{NAMESPACE}",', "")
        return
    pod = each["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for listed in (container["env"], container["volumeMounts"], pod["volumes"]):
        listed.sort(key=lambda entry: entry["name"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_helm_and_kustomize_make_the_same_objects(overlay: str) -> None:
    by_helm, by_kustomize = _comparable(helmed(overlay)), _comparable(kustomized(overlay))
    if overlay == "production":  # where fetching is switched: in gateway.yaml there, by a component's environment here
        fetch = by_helm["ConfigMap", "vlm-gateway"]["data"]["gateway.yaml"]["fetch"]
        container = by_kustomize["Deployment", "vlm-gateway"]["spec"]["template"]["spec"]["containers"][0]
        assert {"name": "VLMGW_FETCH_ENABLED", "value": "true"} in container["env"]
        assert fetch.pop("enabled") is True
        container["env"] = [entry for entry in container["env"] if entry["name"] != "VLMGW_FETCH_ENABLED"]
        by_kustomize["ConfigMap", "vlm-gateway"]["data"]["gateway.yaml"]["fetch"].pop("enabled")
    assert by_helm.keys() == by_kustomize.keys()
    for name, each in by_helm.items():
        assert each == by_kustomize[name], name


def test_the_comparison_would_find_a_difference() -> None:
    changed = copy.deepcopy(kustomized("base").objects)
    next(each for each in changed if each["kind"] == "Deployment")["spec"]["template"]["spec"]["priorityClassName"] = (
        "x"
    )
    assert _comparable(Manifests("changed", changed)) != _comparable(kustomized("base"))


_WRONG = (
    ("replicas: 3", "replicas"),
    ("image: {repo: x}", "repo"),
    ("image: {digest: 'sha256:12'}", "digest"),
    ("image: {pullPolicy: Sometimes}", "pullPolicy"),
    ("replicaCount: two", "replicaCount"),
    ("replicaCount: 0", "replicaCount"),
    ("autoscaling: {by: hand}", "by"),
    ("autoscaling: {cpuPercent: 170}", "cpuPercent"),
    ("podDisruptionBudget: {maxUnavailable: 0}", "maxUnavailable"),
    ("drain: {marginSeconds: 1}", "marginSeconds"),
    ("redis: {url: 'rediss://me:secret@redis:6379'}", "url"),
    ("secret: {create: true, adminToken: short}", "adminToken"),
    ("networkPolicy: {enginePorts: []}", "enginePorts"),
    ("monitoring: {serviceMonitor: {interval: often}}", "interval"),
    ("config: {sever: {}}", "sever"),
    ("config: {server: {port: 80}}", "port"),
    ("config: {server: {admin_host: 127.0.0.1}}", "admin_host"),
    ("config: {server: {settle_s: 5s}}", "settle_s"),
    ("config: {backends: [{url: 'http://x', engine: vlm}]}", "engine"),
    ("config: {media: {worker_nice: 90}}", "worker_nice"),
    ("config: {policies: /elsewhere}", "policies"),
    ("policies: {'shop.yaml/..': {}}", "policies"),
    ("config: {backends: null}", "names no engine"),
    ("discovery: {enabled: true}", "names no Service"),
    ("secret: {create: true}", "adminToken"),
    ("autoscaling: {minReplicas: 5, maxReplicas: 2}", "maxReplicas"),
    ("networkPolicy: {enginesTo: []}", "enginesTo"),  # to nobody would be to everybody
    ("extraEnv: [{name: VLMGW_SERVER_DRAIN_TIMEOUT_S, value: '600'}]", "VLMGW_SERVER_DRAIN_TIMEOUT_S"),
)
_QUIET = "restartOnChange: false"
_LOUD = "restartOnChange: true"
_BARE = "resources: {requests: {cpu: null}}\nexistingConfigSecret: mine\nconfig: null"
_CHANGED = "\nconfig: {log: {level: debug}}"


@cache
def _answers() -> dict[str, dict[str, Any]]:
    """What Helm says of other values than those in the chart's folder, asked together."""
    texts = [*(values for values, _ in _WRONG), _QUIET, _QUIET + _CHANGED, _LOUD, _LOUD + _CHANGED, _BARE]
    return dict(zip(texts, ask_helm(*texts, name="second", namespace="elsewhere"), strict=True))


@pytest.mark.parametrize(("values", "where"), _WRONG)
def test_wrong_values_are_refused_by_name(values: str, where: str) -> None:
    assert where in _answers()[values].get("refused", "taken")


def test_a_shipped_value_is_what_the_schema_takes() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), schema)


def test_another_release_shares_no_name_with_the_first() -> None:
    answer = _answers()[_QUIET]
    objects = [each for text in answer["files"].values() if text.lstrip().startswith(("apiVersion", "---", "#"))
               for each in documents(text)]  # fmt: skip
    assert {each["metadata"]["namespace"] for each in objects} == {"elsewhere"}
    assert all(each["metadata"]["name"].startswith("second-vlm-gateway") for each in objects)
    assert all(each["metadata"]["labels"]["app.kubernetes.io/instance"] == "second" for each in objects)


def test_large_numbers_and_engine_addresses_arrive_as_they_were_written() -> None:
    config = yaml.safe_load(helmed("other").one("ConfigMap")["data"]["gateway.yaml"])
    assert config["models"]["Qwen/Qwen3-VL-8B-Instruct"]["max_pixels"] == 16777216
    assert config["backends"] == ["http://engine-0:8000", {"url": "http://engine-1:8000", "max_pixels": "1280x32x32"}]


def test_what_is_not_wanted_is_not_there() -> None:
    other = helmed("other")
    kinds = {each["kind"] for each in other.objects}
    assert kinds == {"ConfigMap", "Secret", "Deployment", "Service"}
    assert other.one("Deployment")["spec"]["replicas"] == 3
    assert other.one("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 15 + 601 + 25
    assert {"checksum/config", "checksum/secret", "example.com/team"} == set(other.pod["metadata"]["annotations"])
    assert not CUSTOM_KINDS & {each["kind"] for each in helmed("base").objects}


def test_a_changed_setting_restarts_pods_only_where_that_is_wanted() -> None:
    def pod(values: str) -> Any:
        return next(documents(_answers()[values]["files"]["vlm-gateway/templates/deployment.yaml"]))["spec"]["template"]

    assert pod(_QUIET) == pod(_QUIET + _CHANGED)
    assert pod(_LOUD) != pod(_LOUD + _CHANGED)


def test_a_pod_without_a_cpu_request_is_told_no_number_of_workers() -> None:
    def told(values: str) -> set[str]:
        pod = next(documents(_answers()[values]["files"]["vlm-gateway/templates/deployment.yaml"]))["spec"]["template"]
        return {each["name"] for each in pod["spec"]["containers"][0]["env"]}

    assert told(_QUIET) - told(_BARE) == {"VLMGW_MEDIA_WORKERS"}, "the downward API would say 0"


@pytest.mark.parametrize("values", VALUES)
def test_the_notes_are_filled_in(values: str) -> None:
    notes = helm_answers()[values]["files"]["vlm-gateway/templates/NOTES.txt"]
    assert "rollout status deployment/" in notes
    assert "%!" not in notes
    assert "<no value>" not in notes


def test_the_archive_holds_rules_and_dashboards_and_no_values_of_tests(tmp_path: Path) -> None:
    with tarfile.open(packaged(tmp_path)) as archive:
        files = {each.name: each for each in archive.getmembers()}
        assert all(each.isfile() for each in files.values())  # what is a link in the repository is none there
        rules = archive.extractfile("vlm-gateway/files/rules/alerts.yaml")
        assert rules is not None
        assert rules.read() == (CHART / "files" / "rules" / "alerts.yaml").read_bytes()
    dashboards = {Path(name).name for name in files if "/files/dashboards/" in name}
    assert dashboards == {each.name for each in (CHART / "files" / "dashboards").iterdir()}
    assert not [name for name in files if "/ci/" in name]


def test_the_chart_has_the_programs_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def _test_pod() -> Object:
    files = helm_answers()["base"]["files"]
    return next(documents(files["vlm-gateway/templates/tests/answers.yaml"]))


def test_the_pod_of_helm_test_is_valid_and_as_confined_as_the_gateway() -> None:
    pod = _test_pod()
    assert not problems(pod)
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"] == kustomized("base").container["securityContext"]
    service = helmed("base").one("Service", "vlm-gateway")
    assert container["args"][-1] == f"http://vlm-gateway:{service['spec']['ports'][0]['port']}"
    # It is no pod of the Service that it asks, nor one that the NetworkPolicy or the budget counts.
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
