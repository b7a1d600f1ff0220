"""The package's own surface: choosing a backend without loading a library."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from gateway.media import codecs
from gateway.media.codecs import CodecBackendMissing, available_backends, default_backend, describe, load_backend


def test_importing_the_package_loads_no_image_library() -> None:
    script = (
        "import sys, gateway.media.codecs as codecs, gateway.media.codecs.probe\n"
        "codecs.available_backends(); codecs.default_backend()\n"
        "print(sorted({'PIL', 'pyvips', 'simplejpeg', 'imagecodecs', 'numpy', 'isal'} & sys.modules.keys()))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_the_fastest_backend_that_is_there_is_the_default() -> None:
    assert default_backend() == available_backends()[0]
    assert "vips" in available_backends()
    assert load_backend("vips").name == "vips"


def test_an_unknown_backend_is_refused_by_name() -> None:
    with pytest.raises(CodecBackendMissing, match=r"'opencv'.*known: pillow-simd, vips"):
        load_backend("opencv")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "_DECODERS", ("numpy", "no_such_library"))
    assert available_backends() == ()
    with pytest.raises(CodecBackendMissing, match="not installed: no_such_library"):
        load_backend("vips")
    with pytest.raises(CodecBackendMissing, match="no_such_library"):
        default_backend()


def test_without_any_pillow_all_that_needs_one_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)  # what an import takes for a package that is not there
    for wanting in (default_backend, describe, lambda: load_backend("vips")):
        with pytest.raises(CodecBackendMissing, match=r"not installed: PIL .*pip install 'vlm-gateway\[pillow\]'"):
            wanting()


def test_a_wheel_over_pillow_simd_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "version", {"pillow-simd": "12.1.1.post0", "pillow": "13.0.0"}.__getitem__)
    with pytest.raises(CodecBackendMissing, match=r"Pillow 13\.0\.0 was installed over pillow-simd"):
        load_backend("pillow-simd")
    assert available_backends() == ("vips",)


def test_without_pillow_simd_the_build_script_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(codecs, "version", absent)
    with pytest.raises(CodecBackendMissing, match=r"\.ci/pillow"):
        load_backend("pillow-simd")
