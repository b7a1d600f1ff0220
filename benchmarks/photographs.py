"""Real photographs from packages that ship some: a Debian wallpaper package and the wheel of scikit-image.

Nothing is installed: both are downloaded by their ordinary clients and unpacked into the pictures' folder, which git
ignores. Where neither can be reached the list is empty and the caller draws stand-ins.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

# Photographs by users of Ubuntu Touch, 16 MB, CC BY-SA (see the package's copyright file).
DEBIAN_PACKAGE = "lomiri-wallpapers-16.04"
WHEEL = "scikit-image"
_WHEEL_FOLDER = "skimage/data/"
_TIMEOUT_S = 180


@dataclass(frozen=True, slots=True)
class Photograph:
    """A photograph as its package ships it."""

    path: Path
    source: str


def fetch_photographs(directory: Path) -> list[Photograph]:
    """Download and unpack what is not there yet. Never raises for want of a network."""
    found = [Photograph(path, f"Debian package {DEBIAN_PACKAGE}") for path in _from_debian(directory / "debian")]
    return found + [Photograph(path, f"wheel of {WHEEL}") for path in _from_wheel(directory / "wheel")]


def _from_debian(directory: Path) -> list[Path]:
    pictures = sorted(directory.glob("usr/share/backgrounds/*.jpg"))
    if pictures or not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return pictures
    directory.mkdir(parents=True, exist_ok=True)
    command = ["apt-get", "-qq", "download", DEBIAN_PACKAGE]
    if not _succeeds(command, directory):
        if os.geteuid() != 0 or not _succeeds(["apt-get", "-qq", "update"], directory):
            return []
        _succeeds(command, directory)
    for package in directory.glob("*.deb"):
        _succeeds(["dpkg-deb", "-x", str(package), str(directory)], directory)
        package.unlink()
    return sorted(directory.glob("usr/share/backgrounds/*.jpg"))


def _from_wheel(directory: Path) -> list[Path]:
    pictures = _wheel_pictures(directory)
    if pictures:
        return pictures
    directory.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "-q"]
    _succeeds([*pip, "--no-deps", "--only-binary=:all:", WHEEL], directory)
    for wheel in directory.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(_WHEEL_FOLDER) and _is_picture(name)]
            archive.extractall(directory, names)
        wheel.unlink()
    return _wheel_pictures(directory)


def _wheel_pictures(directory: Path) -> list[Path]:
    return sorted(path for path in (directory / _WHEEL_FOLDER).glob("*") if _is_picture(path.name))


def _is_picture(name: str) -> bool:
    return name.endswith((".jpg", ".png"))


def _succeeds(command: list[str], directory: Path) -> bool:
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
