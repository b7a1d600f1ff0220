"""The package itself loads nothing until it is asked to."""

from __future__ import annotations

import subprocess
import sys

from gateway.media import video


def test_importing_it_loads_no_library() -> None:
    code = "import sys, gateway.media.video, gateway.media.clip_service; assert 'av' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_its_version_names_decoder_and_encoder() -> None:
    version = video.installed_version()
    assert version is not None
    assert version.startswith("av")
    assert video.load() is not None
