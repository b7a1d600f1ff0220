"""Lists of backends that others write, and options beside a Service."""

from __future__ import annotations

import pytest

from gateway.config.backend_list import OPTIONS, read_backends, with_options
from gateway.config.backends import BackendConfig
from gateway.config.documents import SettingsProblems

BASE = BackendConfig(engine="vllm", api_key="k")


@pytest.mark.parametrize(
    "text",
    [
        b"- http://a:8000\n- url: http://b:8000\n  max_pixels: 1280x32x32\n",
        b'["http://a:8000", {"url": "http://b:8000", "max_pixels": 1310720}]',
        b"backends:\n- http://a:8000\n- {url: http://b:8000, max_pixels: 1310720}\n",
    ],
)
def test_lists_in_yaml_and_json(text: bytes) -> None:
    a, b = read_backends(text, "f", BASE)
    assert (a.url, a.engine, a.api_key, a.max_pixels) == ("http://a:8000", "vllm", "k", None)
    assert (b.url, b.max_pixels) == ("http://b:8000", 1_310_720)
    assert read_backends(b"[]", "f", BASE) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "f: must be a list of backends"),
        (b"a: b", "f: must be a list of backends"),
        (b"- [", "f:1:4: "),
        (b"\xff", "f: is not UTF-8"),
        (b"- {url: http://a, max_pixel: 1}", "f: backends.0.max_pixel: unknown setting; did you mean max_pixels?"),
        (b"- ftp://a", "f: backends.0.url: must be an http"),
        (b"- http://a\n- http://a", "f: backends.1: a is given twice"),
    ],
)
def test_what_is_wrong_is_told_by_its_place(text: bytes, problem: str) -> None:
    with pytest.raises(SettingsProblems) as caught:
        read_backends(text, "f", BASE)
    assert any(told.startswith(problem) for told in caught.value.problems), caught.value.problems


def test_options_are_read_as_settings_are() -> None:
    made = with_options(BASE, {"max-pixels": "1280x32x32", "models": "a, b", "vision": "true", "role": "encoder"}, "s")
    assert (made.max_pixels, made.models, made.vision, made.role) == (1_310_720, ("a", "b"), True, "encoder")
    assert made.api_key == "k"
    assert with_options(BASE, {}, "s") is BASE


@pytest.mark.parametrize("option", ["api-key", "url", "tls-ca-file", "kv-events", "surprise"])
def test_a_cluster_sets_no_keys_files_and_addresses(option: str) -> None:
    with pytest.raises(SettingsProblems, match="may not be set there"):
        with_options(BASE, {option: "x"}, "s")


def test_wrong_options_are_told() -> None:
    with pytest.raises(SettingsProblems, match="max_pixels"):
        with_options(BASE, {"max-pixels": "many"}, "s")


def test_every_option_is_a_setting() -> None:
    assert BackendConfig.__dataclass_fields__.keys() >= OPTIONS
