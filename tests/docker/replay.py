"""The image without Docker: ``python -m tests.docker.replay [--debootstrap] [--arg NAME=VALUE ...]``.

Takes every step of docker/Dockerfile and does it: in a folder of its own with fresh virtual environments, or with
``--debootstrap`` in a fresh Debian (some minutes, root). Then starts exactly ENTRYPOINT and CMD as USER with ENV, and
an engine simulator by the same entry point; waits until it is ready, sends a picture, runs HEALTHCHECK's command, stops
it with STOPSIGNAL and expects exit code 0.

Decided here: what of a Dockerfile is replayed, and what must then hold. What is left out is said, line by line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.docker import installed
from tests.docker.dockerfile import ROOT, Stage, shipped
from tests.docker.places import Folder, Place, Root
from tests.docker.serving import DEADLINE_S, ask_for_a_picture, ended, serving

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def say(text: str) -> None:
    print(f"replay: {text}", flush=True)  # noqa: T201  # what this program is for


@dataclass(frozen=True, slots=True)
class Image:
    """What came of the steps, and what a container's start needs."""

    place: Place
    stage: Stage
    environment: dict[str, str]

    def start(self, words: list[str], more: dict[str, str] | None = None) -> subprocess.Popen[str]:
        started, environment = self.place.command(
            words, {**self.environment, **(more or {})}, self.stage.last("USER").text
        )
        folder = self.place.path(self.stage.last("WORKDIR").text)
        return subprocess.Popen(started, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                text=True)  # fmt: skip

    @property
    def probe(self) -> list[str]:
        """What HEALTHCHECK runs."""
        step = self.stage.last("HEALTHCHECK")
        return list(replace(step, text=step.text.removeprefix("CMD ")).words)

    @property
    def entrypoint(self) -> list[str]:
        return list(self.stage.last("ENTRYPOINT").words)


def build(place: Place, stage: Stage, given: Mapping[str, str], earlier: Mapping[str, Place]) -> Image:
    """Do the steps of one stage. Raises CalledProcessError for one that fails."""
    arguments: dict[str, str] = {}
    environment: dict[str, str] = {}
    folder = "/"
    for step in stage.steps:
        if step.keyword == "ARG":
            name, has_default, default = step.text.partition("=")
            if name in given or has_default:
                arguments[name] = given.get(name, default)
        elif step.keyword == "ENV":
            environment |= step.pairs({**arguments, **environment})
        elif step.keyword == "WORKDIR":
            folder = step.text
            place.path(folder).mkdir(parents=True, exist_ok=True)
        elif step.keyword == "COPY":
            source = next((flag.partition("=")[2] for flag in step.flags if flag.startswith("--from=")), None)
            _copy(list(step.words), ROOT if source is None else earlier[source], place, folder)
        elif step.keyword == "RUN":
            begin = time.monotonic()
            if place.skips(step.text):
                say(f"left out, needs a root of its own: {_short(step.text)}")
                continue
            say(_short(step.text))
            place.run(step.text, {**arguments, **environment}, folder)
            say(f"  {time.monotonic() - begin:.1f} s")
    return Image(place, stage, environment)


def _copy(words: list[str], source: Path | Place, place: Place, folder: str) -> None:
    *names, target = words
    goal = place.path(target if target.startswith("/") else f"{folder.rstrip('/')}/{target}")
    for name in names:
        given = source / name if isinstance(source, Path) else source.path(name)
        if given == goal:
            continue
        if given.is_dir():  # Docker copies what is in a folder
            shutil.copytree(
                given, goal, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
            continue
        into = goal / given.name if target.endswith("/") else goal
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(given, into)


def _short(script: str) -> str:
    text = " ".join(script.split())
    return text if len(text) <= 110 else f"{text[:107]}..."


def debian(folder: Path) -> Path:
    """A Debian 12 as small as its image's."""
    root = folder / "debian"
    if not root.is_dir():  # it is there after an earlier run with --keep
        say("debootstrap --variant=minbase bookworm")
        # In a mount namespace of its own: its /proc must not outlive it, whatever happens.
        command = ["unshare", "--mount", "debootstrap", "--variant=minbase", "bookworm", str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    Root(root, CACHE).trust_this_machine()
    return root


def serve(image: Image) -> None:
    """Start it as Docker would and hold it to what the image promises. Raises AssertionError."""
    command = [*image.entrypoint, *image.stage.last("CMD").words]
    stop = signal.Signals[image.stage.last("STOPSIGNAL").text]
    say(f"as {image.stage.last('USER').text}: {' '.join(command)}")
    begin = time.monotonic()
    with serving(image.start, [*image.entrypoint, "engine-sim"], command) as running:
        say(f"ready after {time.monotonic() - begin:.1f} s")
        say(ask_for_a_picture(running.url))
        assert ended(image.start(image.probe, running.settings)) == 0, "the health check does not find a live gateway"
        say(f"{' '.join(image.probe)}: exit code 0")
        doctor = image.start([*image.entrypoint, "doctor", "--json"], running.settings)
        found = json.loads(doctor.communicate(timeout=DEADLINE_S)[0])
        say(f"codecs {found['codecs']['default']}; walls around workers: {json.dumps(found['sandbox'])}")
        running.gateway.send_signal(stop)
        assert ended(running.gateway) == 0, f"{stop.name}: exit code {running.gateway.returncode}"
        say(f"{stop.name}: drained, exit code 0")
        assert ended(image.start(image.probe, running.settings)) == 1, "the health check finds a gateway that has ended"


def size_mb(place: Place, inside: str) -> float:
    """What a folder of the image weighs."""
    files = (path for path in place.path(inside).rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--debootstrap", action="store_true", help="in a fresh Debian instead of a folder")
    parser.add_argument("--arg", action="append", default=[], help="a build argument, NAME=VALUE")
    parser.add_argument("--keep", type=Path, help="make it there, and leave it there")
    options = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in options.arg)
    begin = time.monotonic()
    _, stages = shipped()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vlmgw-image-") as made:
        folder = options.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        places: dict[str, Place] = {}
        base = debian(folder) if options.debootstrap else None
        images = []
        for stage in stages:
            name = stage.name or "runtime"
            root = folder / name
            if base is not None:
                subprocess.run(["cp", "--archive", "--one-file-system", str(base), str(root)], check=True)
            # In a folder, what one stage made and another copies is the same: a COPY --from= changes nothing there.
            places[name] = Folder(folder, CACHE) if base is None else Root(root, CACHE)
            images.append(build(places[name], stage, given, places))
        say(f"/opt/vlm-gateway: {size_mb(images[-1].place, '/opt/vlm-gateway'):.0f} MB")
        serve(images[-1])
        if base is None:
            installed.check(folder / "dist", folder / "build/tools", folder / "build/wheels", say)
    say(f"done in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
