"""Where the steps of a Dockerfile are replayed without Docker.

``Folder`` keeps the image's folders below one of its own and uses this machine's packages: quick, and what it cannot do
(install Debian packages, make users) it leaves out. ``Root`` is a Debian of its own, made with debootstrap, in which a
step runs as in a container: as root of that file system, with nothing of this machine but its network.

Decided here: how a command runs in such a place and how files get there. Not decided here: which (``replay``).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

# What a step may fetch with: proxies, authorities and time limits of this machine. Nothing else comes in from outside.
_NETWORK = re.compile(r"(?i)(https?|no|all)_proxy|PIP_(CERT|DEFAULT_TIMEOUT|INDEX_URL)|SSL_CERT_FILE")
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CACHE = "/var/cache/build"
_AUTHORITIES = "/etc/ssl/of-the-machine.crt"
_OWN_FOLDERS = re.compile(r"(?<![\w./-])(/build|/opt/vlm-gateway|/etc/vlm-gateway|/var/empty)(?![\w-])")
_NEEDS_A_ROOT = re.compile(r"^(apt-get|groupadd|useradd)\b")

Started: TypeAlias = tuple[list[str], dict[str, str]]  # words and environment for Popen


def network_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if _NETWORK.fullmatch(name)}


def _as_user(user: str) -> list[str]:
    """As `docker run --user UID:GID --cap-drop ALL --security-opt no-new-privileges`."""
    uid, gid = user.split(":")
    who = [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    return ["setpriv", *who, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


class Place(Protocol):
    """One stage's file system while its steps are replayed."""

    def run(self, script: str, environment: Mapping[str, str], folder: str) -> None:
        """A RUN step. Raises subprocess.CalledProcessError when it fails."""

    def command(self, words: Sequence[str], environment: Mapping[str, str], user: str) -> Started:
        """How to start a container's command here as ``user`` (``uid:gid``)."""

    def path(self, inside: str) -> Path:
        """A path of the image as a path of this machine."""

    def skips(self, script: str) -> bool:
        """Whether a RUN step is left out."""


@dataclass(frozen=True, slots=True)
class Folder:
    root: Path
    cache: Path

    def run(self, script: str, environment: Mapping[str, str], folder: str) -> None:
        self.path(folder).mkdir(parents=True, exist_ok=True)
        usual = {
            "PATH": _USUAL_PATH,
            "HOME": str(Path.home()),
            "XDG_CACHE_HOME": str(self.cache),
            **network_environment(),
        }
        environment = {**usual, **network_environment(), **self._moved_values(environment)}
        command = ["/bin/sh", "-ec", self._moved(script)]
        subprocess.run(command, cwd=self.path(folder), env=environment, stdin=subprocess.DEVNULL, check=True)

    def command(self, words: Sequence[str], environment: Mapping[str, str], user: str) -> Started:
        moved = self._moved_values(environment)
        program = shutil.which(words[0], path=moved["PATH"])
        assert program is not None, f"{words[0]} is not on the image's PATH"
        started = [program, *map(self._moved, words[1:])]
        if os.geteuid() == 0:
            started = [*_as_user(user), *started]
        return started, moved

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def skips(self, script: str) -> bool:
        return bool(_NEEDS_A_ROOT.match(script))

    def _moved(self, text: str) -> str:
        return _OWN_FOLDERS.sub(lambda match: f"{self.root}{match[1]}", text.replace(_CACHE, str(self.cache)))

    def _moved_values(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {name: ":".join(map(self._moved, value.split(":"))) if name == "PATH" else self._moved(value)
                for name, value in environment.items()}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Root:
    root: Path
    cache: Path

    def run(self, script: str, environment: Mapping[str, str], folder: str) -> None:
        self.path(folder).mkdir(parents=True, exist_ok=True)
        usual = {"PATH": _USUAL_PATH, "HOME": "/tmp", "DEBIAN_FRONTEND": "noninteractive", **network_environment()}
        if self.path(_AUTHORITIES).is_file():
            usual |= {"PIP_CERT": _AUTHORITIES, "SSL_CERT_FILE": _AUTHORITIES}
        assigned = [f"{name}={value}" for name, value in {**usual, **environment}.items()]
        inner = f"cd {shlex.quote(folder)}; {script}"
        self.path(_CACHE).mkdir(parents=True, exist_ok=True)
        mounts = f"mount --bind {shlex.quote(str(self.cache))} {shlex.quote(str(self.path(_CACHE)))}"
        entered = self._entered(["env", "-i", *assigned, "/bin/sh", "-ec", inner], mounts)
        subprocess.run(entered, stdin=subprocess.DEVNULL, check=True)

    def command(self, words: Sequence[str], environment: Mapping[str, str], user: str) -> Started:
        assigned = [f"{name}={value}" for name, value in environment.items()]
        inside = [*_as_user(user), "env", "-i", *assigned, *words]
        quoted = shlex.quote(str(self.root))
        return self._entered(inside, f"mount -o remount,ro,bind {quoted}", self_bound=True), dict(os.environ)

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def skips(self, script: str) -> bool:
        return False

    def trust_this_machine(self) -> None:
        """Its authorities for TLS and its sources of packages, which may stand behind a mirror."""
        authorities = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
        # Not where Debian's own bundle is, which the package ca-certificates writes.
        for file, inside in ((authorities, _AUTHORITIES), ("/etc/resolv.conf", "/etc/resolv.conf")):
            if file is not None and Path(file).is_file():
                self.path(inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, self.path(inside))
        for folder in ("sources.list", "sources.list.d", "apt.conf.d", "trusted.gpg.d", "preferences.d"):
            given, target = Path("/etc/apt") / folder, self.path("/etc/apt") / folder
            if given.is_dir():
                shutil.copytree(given, target, dirs_exist_ok=True)
            elif given.is_file():
                shutil.copyfile(given, target)

    def _entered(self, words: Sequence[str], mounts: str, *, self_bound: bool = False) -> list[str]:
        """In a mount namespace of its own: /proc and /dev as a container has them, then what is asked for."""
        quoted = shlex.quote(str(self.root))
        bound = f"mount --bind {quoted} {quoted}; " if self_bound else ""
        script = (
            f"{bound}mount --rbind /proc {quoted}/proc; mount --rbind /dev {quoted}/dev; {mounts}; "
            f'exec chroot {quoted} "$@"'
        )
        return ["unshare", "--mount", "/bin/sh", "-ec", script, "replay", *words]
