"""What the two READMEs tell people to write, written: an overlay of one's own, a patch, values."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker.manifests import CHART, KUSTOMIZE, ROOT, Manifests, ask_helm, documents, kubectl
from tests.docker.schemas import problems

_PAGE = (KUSTOMIZE / "README.md").read_text(encoding="utf-8")
_CHART_PAGE = (CHART / "README.md").read_text(encoding="utf-8")


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Manifests:
    """The README's kustomization.yaml with its patch of Redis' address, beside copies of what it names by the web."""
    root = tmp_path_factory.mktemp("repository")
    for part in ("docker/kubernetes", "grafana"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    mine = root / "mine"
    (mine / "policies").mkdir(parents=True)
    written, patch = _blocks(_PAGE, "yaml")
    local = re.sub(r"github\.com/YOU/vlm-gateway//(\S+?)\?ref=v[\d.]+", r"../\1", written)
    (mine / "kustomization.yaml").write_text(local + patch, encoding="utf-8")
    (mine / "gateway.yaml").write_text("backends: [http://engine:8000]\npolicies: policies\n", encoding="utf-8")
    for name in ("default", "shop"):
        (mine / "policies" / f"{name}.yaml").write_text("default_task: chat\n", encoding="utf-8")
    made = subprocess.run([kubectl(), "kustomize", str(mine)], check=False, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    return Manifests("README", tuple(documents(made.stdout)))


def test_an_overlay_of_ones_own_changes_image_namespace_and_files(overlay: Manifests) -> None:
    assert not [problem for each in overlay.objects for problem in problems(each)]
    assert overlay.container["image"] == "registry.example.com/vlm-gateway:0.1.0"
    assert {each["metadata"]["namespace"] for each in overlay.objects} == {"vision"}
    assert "http://engine:8000" in overlay.one("ConfigMap", "vlm-gateway")["data"]["gateway.yaml"]
    assert set(overlay.one("ConfigMap", "vlm-gateway-policies")["data"]) == {"default.yaml", "shop.yaml"}


def test_the_patch_changes_where_redis_is_and_nothing_else(overlay: Manifests) -> None:
    environment = {each["name"]: each.get("value") for each in overlay.container["env"]}
    assert environment["VLMGW_REDIS_URL"] == "rediss://redis.data.svc:6379/0"
    assert environment["VLMGW_REDIS_USERNAME"] == "vlm-gateway"
    assert len(environment) == len(overlay.container["env"])


def test_the_charts_values_are_taken() -> None:
    (values,) = _blocks(_CHART_PAGE, "yaml")
    (answer,) = ask_helm(values)
    assert "refused" not in answer, answer
    objects = [each for path, text in answer["files"].items() if path.endswith(".yaml") for each in documents(text)]
    assert not [problem for each in objects for problem in problems(_plain(each))]
    assert {"ServiceMonitor", "PrometheusRule"} <= {each["kind"] for each in objects}


def _plain(each: dict[str, Any]) -> dict[str, Any]:
    """Without annotations, which our schemas of custom kinds do not hold."""
    return each | {"metadata": {key: value for key, value in each["metadata"].items() if key != "annotations"}}


def test_links_lead_somewhere() -> None:
    for page in (KUSTOMIZE / "README.md", CHART / "README.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_components_and_objects_are_all_told() -> None:
    table = {name for line in _PAGE.splitlines() for name in re.findall(r"^\| `([a-z-]+)` \|", line)}
    assert table == {each.name for each in (KUSTOMIZE / "components").iterdir()}
    for name in (KUSTOMIZE / "overlays").iterdir():
        assert f"`{Path(name).name}`" in _PAGE


def test_the_memory_that_is_told_is_that_of_the_settings() -> None:
    base = yaml.safe_load((KUSTOMIZE / "base" / "deployment.yaml").read_text(encoding="utf-8"))
    limit = base["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert f"| limit | {limit.replace('Gi', ' GiB')} |" in _PAGE
