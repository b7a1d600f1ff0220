"""Digests of what every kind of file becomes under every kind of plan, recorded by the plan's version.

    python -m tests.golden.fingerprints            this machine's digests as JSON, backend after backend
    python -m tests.golden.fingerprints --record   writes them into fingerprints.json

A version (`CodecBackend.fingerprint`) names backend, revision, libraries and what this CPU makes of a fixed picture, so
whoever has a recorded version must make the recorded bytes: another worker, process, machine or day. Versions of other
libraries are recorded beside each other; those of an older revision of the pipeline go when a newer one is recorded.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from gateway.media.codecs import CodecBackend, available_backends, load_backend
from gateway.media.codecs.probe import probe_all
from gateway.types import Change, Fidelity, ImagePlan, ImageTokens, OutputFormat, Probe, Size

FOLDER = Path(__file__).parent
RECORD = FOLDER / "fingerprints.json"
Digests = dict[str, str]
_TOKENS = ImageTokens(1, 0, 2, (1, 1, 1), 1, 4)
# Sides of the target in hundredths of the original's; with less than 50 a JPEG is decoded at a half in some class.
_SHRUNK, _SMALL, _GROWN = 62, 31, 117


@dataclass(frozen=True, slots=True)
class Golden:
    """One file under one plan; ``key`` is its name in the record."""

    key: str
    path: Path
    probe: Probe
    plan: ImagePlan


def files() -> list[Path]:
    """The committed originals, every format that is taken."""
    images = FOLDER / "images"
    return [images / "scene.jpg", images / "screen.png", *sorted((images / "formats").iterdir())]


def goldens() -> Iterator[Golden]:
    """Every file under every plan, in a fixed order."""
    for path in files():
        probe = probe_all(path.read_bytes())
        for name, plan in plans(probe.upright).items():
            yield Golden(f"{path.name} {name}", path, probe, plan)


def plans(size: Size) -> dict[str, ImagePlan]:
    """Plans of every kind for an image of this upright size."""
    own = ImagePlan(
        original=size,
        target=size,
        changes=(Change.RESIZED,),
        output=OutputFormat.AUTO,
        jpeg_quality=95,
        background=(255, 255, 255),
        version="golden",
        before=_TOKENS,
        after=_TOKENS,
    )
    shrunk = replace(own, target=_scaled(size, _SHRUNK))
    return {
        "own size": own,
        "shrunk": shrunk,
        "small": replace(own, target=_scaled(size, _SMALL)),
        "small fast": replace(own, target=_scaled(size, _SMALL), fidelity=Fidelity.FAST),
        "grown": replace(own, target=_scaled(size, _GROWN)),
        "png": replace(shrunk, output=OutputFormat.PNG, background=(20, 40, 90)),
        "jpeg 85": replace(shrunk, output=OutputFormat.JPEG, jpeg_quality=85),
    }


def _scaled(size: Size, hundredths: int) -> Size:
    return Size(size.width * hundredths // 100, size.height * hundredths // 100)


def digest(file: bytes) -> str:
    """Half a SHA-256: against chance, not against an enemy."""
    return sha256(file).hexdigest()[:32]


def digests(backend: CodecBackend) -> Digests:
    """What this backend makes here and now."""
    return {
        golden.key: digest(backend.render(golden.path.read_bytes(), golden.probe, golden.plan).data)
        for golden in goldens()
    }


def computed() -> dict[str, Digests]:
    """By version, for every backend that is installed."""
    backends = [load_backend(name) for name in available_backends()]
    return {backend.fingerprint: digests(backend) for backend in backends}


def recorded() -> dict[str, Digests]:
    """What stands in the record, by version."""
    found: dict[str, Digests] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def revision(version: str) -> tuple[str, int]:
    """Backend and revision of the pipeline that a version begins with."""
    found = re.match(r"([a-z-]+)-r(\d+)\+", version)
    assert found is not None, version
    return found[1], int(found[2])


def merged(known: dict[str, Digests], new: dict[str, Digests]) -> dict[str, Digests]:
    """The record with these versions in it and without those of older revisions."""
    newest = dict(revision(version) for version in new)
    kept = {
        version: found
        for version, found in known.items()
        if revision(version)[1] >= newest.get(revision(version)[0], 0)
    }
    return dict(sorted((kept | new).items()))


def main() -> None:
    """See the module."""
    found = computed()
    if "--record" in sys.argv[1:]:
        known = recorded() if RECORD.exists() else {}
        RECORD.write_text(json.dumps(merged(known, found), indent=1) + "\n", encoding="utf-8")
    else:
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
