"""Each library that does I/O or touches untrusted bytes has one door, so that replacing or hardening it is one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, imported_names, shown, source_files

CODECS = ("media/codecs",)
ENGINE_CLIENT = ("upstream/transport", "media/fetch")

# Library name (longest match wins) -> the files or folders, below gateway/, that may name it.
DOORS: dict[str, tuple[str, ...]] = {
    "aiohttp": ("api", *ENGINE_CLIENT),
    "aiohttp.web": ("api",),
    "aiohttp.ClientSession": ENGINE_CLIENT,
    "aiohttp.TCPConnector": ENGINE_CLIENT,
    "aiohttp.client": ENGINE_CLIENT,
    "aiohttp.connector": ENGINE_CLIENT,
    "aiohttp.request": ENGINE_CLIENT,
    "simplejpeg": CODECS,
    "pyvips": CODECS,
    "imagecodecs": CODECS,
    "kornia_rs": CODECS,
    "pillow_heif": CODECS,
    "PIL": CODECS,
    "av": ("media/video",),
    "isal": CODECS,
    "numpy": CODECS,
    "redis": ("state/redis",),
    "opentelemetry": ("telemetry/spans",),
    "prometheus_client": ("telemetry/metrics",),
    "yaml": ("config",),
    "jwt": ("api/oidc",),
    "httpx": (
        "cli",
        "api/oidc",
        "upstream/health",
        "upstream/scrape",
        "upstream/discover",
        "upstream/sources/kubernetes",
        "upstream/waking",
    ),
    "dns": ("upstream/sources/dns",),
    "xxhash": ("media/digest", "routing/hashing", "routing/blocks/chain"),
    "zmq": ("upstream/kv_events/follower",),
    "blake3": ("media/digest",),
    "tokenizers": ("prompts/tokenizer",),
    "jinja2": ("prompts/template",),
    "typer": ("cli",),
    "rich": ("cli",),
}

# The stand-in engine is a program of its own: what it shares with the gateway could not check the gateway.
EXEMPT = ("simulator",)


def _within(path: Path, doors: tuple[str, ...]) -> bool:
    place = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return any(place == door or place.startswith(f"{door}/") for door in doors)


def _doors_of(name: str) -> tuple[str, ...] | None:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (doors := DOORS.get(".".join(parts[:length]))) is not None:
            return doors
    return None


def test_each_library_is_used_behind_its_door() -> None:
    trespassers = [
        f"{shown(path)}:{line} names {name}; its door is {', '.join(doors)}"
        for path in source_files()
        if not _within(path, EXEMPT)
        for line, name in imported_names(path)
        if (doors := _doors_of(name)) is not None and not _within(path, doors)
    ]
    assert not trespassers, "\n".join(trespassers)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import aiohttp\naiohttp.ClientSession()", {"aiohttp", "aiohttp.ClientSession"}),
        ("from aiohttp import web", {"aiohttp.web"}),
        ("import numpy as np\nnp.zeros(1)", {"numpy", "numpy.zeros"}),
        ("def f():\n    import PIL.Image", {"PIL.Image"}),
    ],
)
def test_no_spelling_of_an_import_slips_past(tmp_path: Path, code: str, names: set[str]) -> None:
    source = tmp_path / "source.py"
    source.write_text(code)
    assert {name for _, name in imported_names(source)} == names


def test_every_door_of_a_library_in_use_exists() -> None:
    """A renamed file would leave its library without a door, and the table untrue."""
    used = {
        ".".join(name.split(".")[:length])
        for path in source_files()
        if not _within(path, EXEMPT)
        for _, name in imported_names(path)
        for length in (1, 2)
    }
    gone = {
        door
        for library in DOORS.keys() & used
        for door in DOORS[library]
        if not (PACKAGE / door).is_dir() and not (PACKAGE / f"{door}.py").is_file()
    }
    assert gone == set()
