"""A pod's only container as a process: its command, its environment, its volumes laid out as a kubelet does it.

Decided here: how volumes look (files are links through ``..data``, which a change swaps), what references become, and
that absolute paths of mounts lead below a folder of the test's. Not decided here: what is rendered (``manifests``).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from tests.docker.manifests import Manifests, Object
from tests.e2e.processes import until

# Secrets and ConfigMaps that are made beside the manifests: (kind, name) -> key -> text.
Given: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
# Workers yield to everybody, on a busy machine for long.
_START_S = 90.0
KEYS = {"admin-token": "token-of-the-test-0123456789", "identity-secret": "secret-of-the-test-0123456789"}


class Volume:
    """A ConfigMap or Secret in a folder, as the kubelet's atomic writer leaves it."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder = folder
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.swap(files)

    def swap(self, files: Mapping[str, str]) -> None:
        """Another content, all of it at once."""
        self._count += 1
        version = self.folder / f"..version_{self._count}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text, encoding="utf-8")
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")


class Pod:
    """Command, environment and volumes below ``root``; nothing runs yet.

    ``given``: what the manifests refer to and do not hold. ``environment``: what a test has otherwise, such as free
    ports. Raises KeyError for a reference to what is nowhere.
    """

    def __init__(self, manifests: Manifests, root: Path, given: Given, environment: Mapping[str, str]) -> None:
        self._manifests = manifests
        self._root = root
        self._given = given
        spec, container = manifests.pod["spec"], manifests.container
        self._moved = [mount["mountPath"] for mount in container["volumeMounts"]]
        volumes = {each["name"]: each for each in spec["volumes"]}
        self.volumes: dict[str, Volume] = {}
        for mount in sorted(container["volumeMounts"], key=lambda each: str(each["mountPath"])):
            self._mount(volumes[mount["name"]], Path(f"{root}{mount['mountPath']}"))
        self.command = [self.below(word) for word in [*container["command"], *container["args"]]]
        self.environment = {each["name"]: self.below(self._value(each)) for each in container["env"]} | dict(
            environment
        )

    def below(self, text: str) -> str:
        """A path of a mount, as it is here."""
        return (
            f"{self._root}{text}" if any(text == path or text.startswith(f"{path}/") for path in self._moved) else text
        )

    def data(self, kind: str, name: str) -> Mapping[str, str]:
        """What a ConfigMap or Secret holds, of the manifests or given. Raises KeyError."""
        for each in self._manifests.all(kind):
            if each["metadata"]["name"] == name:
                held: dict[str, str] = each.get("data") or each["stringData"]
                return held
        return self._given[kind, name]

    def _mount(self, volume: Object, folder: Path) -> None:
        if "configMap" in volume:
            files = self.data("ConfigMap", volume["configMap"]["name"])
        elif "secret" in volume:
            files = self.data("Secret", volume["secret"]["secretName"])
            wanted = {each["key"]: each["path"] for each in volume["secret"].get("items", [])}
            files = {wanted[key]: files[key] for key in wanted} if wanted else files
        else:
            folder.mkdir(parents=True, exist_ok=True)
            return
        self.volumes[volume["name"]] = Volume(folder, files)

    def _value(self, each: Object) -> str:
        if "value" in each:
            return str(each["value"])
        source: dict[str, Any] = each["valueFrom"]
        if "secretKeyRef" in source:
            return self.data("Secret", source["secretKeyRef"]["name"])[source["secretKeyRef"]["key"]]
        kind, _, resource = source["resourceFieldRef"]["resource"].partition(".")
        return str(math.ceil(float(self._manifests.container["resources"][kind][resource])))


class Running:
    """The container's command, started without a shell, with no environment but the pod's and a search path."""

    def __init__(self, pod: Pod, folder: Path) -> None:
        self._pod = pod
        self._log = folder / "stdout"
        self.admin = self.url = ""

    def __enter__(self) -> Running:
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._pod.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**self._pod.environment, "PATH": path},
            )  # fmt: skip
        try:
            started = until(lambda: self._said("started") or self._ended(), "the line of the start", _START_S)
        except BaseException:
            self._end()
            raise
        assert isinstance(started, dict), self._log.read_text()
        self.url = f"http://127.0.0.1:{started['data_port']}"
        self.admin = f"http://127.0.0.1:{started['admin_port']}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _ended(self) -> str | None:
        return None if self.process.poll() is None else "ended"

    def _said(self, event: str) -> dict[str, Any] | None:
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if line.startswith("{") and line.endswith("}") and (told := json.loads(line)).get("event") == event:
                return dict(told)
        return None
