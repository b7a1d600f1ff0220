"""The distribution as pip alone installs it: sdist, the wheel made of it, a fresh environment with the extra `pillow`.

Decided here: what must hold of the archives and of a gateway that was installed so: nothing tracked is missing from the
sdist, everything that the program reads is in the wheel, the `vips` backend prepares a picture. The packages are those
that the image's build stage has already fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from tests.docker.dockerfile import ROOT
from tests.docker.serving import Start, ask_for_a_picture, serving


def archives(tools: Path, folder: Path) -> tuple[Path, Path]:
    """Build both with the locked tools of the image; the wheel out of the sdist, as an index would get them."""
    python = str(tools / "bin/python")
    build = [python, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (sdist,) = folder.glob("*.tar.gz")
    wheel = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*wheel, "--wheel-dir", str(folder), str(sdist)], check=True)
    (made,) = folder.glob("vlm_gateway-*.whl")
    return sdist, made


def missing_from(sdist: Path) -> set[str]:
    """What is tracked and not in the archive; of a link to a folder the folder's files are there instead."""
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in tracked.stdout.splitlines() if not (ROOT / name).is_dir()} - inside


def check(folder: Path, tools: Path, wheels: Path, say: Callable[[str], None]) -> None:
    """Raises AssertionError for what does not hold, CalledProcessError for a command that fails."""
    folder.mkdir()
    sdist, wheel = archives(tools, folder)
    missing = missing_from(sdist)
    assert not missing, f"not in the sdist: {sorted(missing)[:10]}"
    say(f"{sdist.name} {sdist.stat().st_size / 1e6:.1f} MB, {wheel.name} {wheel.stat().st_size / 1e6:.1f} MB")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    pillow = ["download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(wheels)]
    subprocess.run([*pip, *pillow, "--requirement", str(ROOT / "docker/lock/pillow.txt")], check=True)
    offline = ["--quiet", "--no-index", "--find-links", str(wheels)]
    subprocess.run([*pip, "install", *offline, f"{wheel}[pillow]"], check=True)
    subprocess.run([*pip, "check"], check=True, stdout=subprocess.DEVNULL)
    program = str(environment / "bin/vlm-gateway")

    def start(words: list[str], more: dict[str, str] | None = None) -> subprocess.Popen[str]:
        quiet, heard = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(
            [program, *words],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", **(more or {})},
            stdin=quiet,
            stdout=heard,
            text=True,
        )

    say("in a fresh environment: pip install WHEEL[pillow]")
    _vips(start, say)


def _vips(start: Start, say: Callable[[str], None]) -> None:
    told = json.loads(start(["doctor", "--json"]).communicate()[0])
    assert told["codecs"]["default"] == "vips", told
    with serving(start, ["engine-sim"], ["serve"]) as running:
        say(f"vips: {ask_for_a_picture(running.url)}")
