"""Every overlay builds, and every object is one that Kubernetes, the Prometheus operator and KEDA take."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker.manifests import KUSTOMIZE, OVERLAYS, RENDERINGS, ROOT, Object, kustomized, rendering
from tests.docker.schemas import problems


@pytest.mark.parametrize("origin", RENDERINGS)
def test_every_object_is_valid_in_the_oldest_and_the_newest_version(origin: str) -> None:
    told = [problem for each in rendering(origin).objects for problem in problems(each)]
    assert not told, "\n".join(told)


def _changed(each: Object, path: str, value: object) -> Object:
    made = copy.deepcopy(each)
    *parents, last = path.split(".")
    at: Any = made
    for parent in parents:
        at = at[int(parent)] if isinstance(at, list) else at[parent]
    at[last] = value
    return made


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", "spec.template.spec.terminationGraceSeconds", 120),
        ("Deployment", "spec.template.spec.containers.0.ports", "8080"),
        ("PodDisruptionBudget", "spec.maxUnavailible", 1),
        ("NetworkPolicy", "spec.egres", []),
        ("ServiceMonitor", "spec.endpoints.0.intervall", "15s"),
        ("ScaledObject", "spec.triggers.0.metadata.value", 70),
        ("PrometheusRule", "spec.groups.0.rules.0.alert", "Both"),
    ],
)
def test_a_misspelt_or_wrong_member_would_be_found(kind: str, path: str, value: object) -> None:
    known = kustomized("keda").all(kind)[0]
    assert not problems(known)
    assert problems(_changed(known, path, value))


def test_every_component_is_in_an_overlay() -> None:
    used = {
        Path(entry).name
        for overlay in OVERLAYS
        if overlay != "base"
        for entry in yaml.safe_load((KUSTOMIZE / "overlays" / overlay / "kustomization.yaml").read_text())["components"]
    }
    assert used == {each.name for each in (KUSTOMIZE / "components").iterdir()}


def test_every_file_is_used() -> None:
    for folder in (KUSTOMIZE / "base", *(KUSTOMIZE / "components").iterdir()):
        text = (folder / "kustomization.yaml").read_text(encoding="utf-8")
        unused = [
            each.name
            for each in folder.rglob("*.yaml")
            if each.name != "kustomization.yaml" and str(each.relative_to(folder)) not in text
        ]
        assert not unused, f"{folder.name}: {unused}"


def test_nothing_is_there_twice() -> None:
    for origin in RENDERINGS:
        names = [
            (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
            for each in rendering(origin).objects
        ]
        assert len(names) == len(set(names)), origin


def test_the_dashboards_are_those_of_the_repository() -> None:
    shown = {
        name: text
        for each in kustomized("monitoring").all("ConfigMap")
        if each["metadata"].get("labels", {}).get("grafana_dashboard") == "1"
        for name, text in each["data"].items()
    }
    committed = {
        each.name: each.read_text(encoding="utf-8") for each in (ROOT / "grafana" / "dashboards").glob("*.json")
    }
    assert shown == committed


def test_names_carry_no_hash_so_that_pods_follow_changes_instead_of_being_rolled() -> None:
    for overlay in OVERLAYS:
        names = {each["metadata"]["name"] for each in kustomized(overlay).all("ConfigMap")}
        assert {"vlm-gateway", "vlm-gateway-policies"} <= names
