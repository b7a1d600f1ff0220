"""Where settings come from: precedence, units, and mistakes, all of them at once and in words that help."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.backends import BackendConfig
from gateway.config.documents import SettingsProblems
from gateway.config.settings import Settings
from gateway.config.sources import (
    OTHER_NAMES,
    environment_name,
    leaf_paths,
    load_settings,
    masked,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.yaml"


def loaded(file: Path, text: str, **environment: str) -> Settings:
    file.write_text(text, encoding="utf-8")
    return load_settings(file, environment=environment)


def problems(file: Path, text: str, **environment: str) -> list[str]:
    """The problems without the file's name."""
    with pytest.raises(SettingsProblems) as found:
        loaded(file, text, **environment)
    return [problem.removeprefix(f"{file}: ").removeprefix(f"{file}:") for problem in found.value.problems]


def test_without_anything_the_defaults_hold(file: Path) -> None:
    assert load_settings(environment={}) == Settings()
    assert loaded(file, "") == Settings()
    assert loaded(file, "server:\n") == Settings()


def test_flags_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    file.write_text("server: {port: 1, admin_port: 2, host: a}\nmedia: {workers: 3}\n")
    environment = {"VLMGW_SERVER_PORT": "10", "VLMGW_SERVER_ADMIN_PORT": "20", "PATH": "/bin"}
    settings = load_settings(file, environment=environment, flags={"server.port": 100})
    server = settings.server
    assert (server.port, server.admin_port, server.host, settings.media.workers) == (100, 20, "a", 3)


def test_every_scalar_can_be_set_from_the_environment() -> None:
    names = [environment_name(path) for path in leaf_paths()]
    assert len(set(names)) == len(names)
    assert environment_name("server.max_body_bytes") == "VLMGW_SERVER_MAX_BODY_BYTES"
    assert "VLMGW_BACKENDS" in names
    assert "VLMGW_MODELS" not in names


def test_lists_are_comma_separated_in_the_environment() -> None:
    environment = {
        "VLMGW_BACKENDS": "http://a:1, http://b:2,",
        "VLMGW_FETCH_PUBLIC_NETWORKS": "10.1.0.0/16, fd00::/8",
        "VLMGW_FETCH_ENABLED": "no",
        "VLMGW_MEDIA_SLAB_BYTES": "1GiB",
    }
    settings = load_settings(environment=environment)
    assert [backend.url for backend in settings.backends] == ["http://a:1", "http://b:2"]
    assert settings.fetch.public_networks == ("10.1.0.0/16", "fd00::/8")
    assert not settings.fetch.enabled
    assert settings.media.slab_bytes == 1 << 30


@pytest.mark.parametrize("name", sorted(OTHER_NAMES))
def test_names_of_ours_that_are_no_settings_are_left_alone(name: str) -> None:
    assert load_settings(environment={name: "x"}) == Settings()


def test_all_problems_are_told_at_once(file: Path) -> None:
    text = "srever: {}\nserver: {prot: 1, port: 70000, settle_s: soon}\nmedia: 7\nlog: {level: inof}\n"
    found = problems(file, text, VLMGW_SERVER_PRT="1", VLMGW_LOG_ACCESS="perhaps")
    assert found == [
        "srever: unknown setting; did you mean server?",
        "server.prot: unknown setting; did you mean port?",
        "server.port: must be between 0 and 65535, not 70000",
        "server.settle_s: must be a number (s), not 'soon'",
        "media: must be a mapping, not int",
        "log.level: must be one of debug, info, warning, error; did you mean info?",
        "environment: VLMGW_SERVER_PRT: unknown setting; did you mean VLMGW_SERVER_PORT?",
        "environment: log.access: must be true or false, not 'perhaps'",
    ]


def test_flags_are_checked_like_everything_else() -> None:
    with pytest.raises(SettingsProblems) as found:
        load_settings(environment={}, flags={"media.workers": 0, "media.wrokers": 1})
    assert found.value.problems == (
        "flags: media.workers: must be between 1 and 256, not 0",
        "flags: media.wrokers: unknown setting; did you mean workers?",
    )


def test_a_setting_that_resembles_nothing_lists_what_there_is(file: Path) -> None:
    assert problems(file, "log: {zzz: 1}") == ["log.zzz: unknown setting; known: access, level"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("65536", 65536),
        ("64MiB", 64 << 20),
        ("'64 MiB'", 64 << 20),
        ("0.25GB", 250_000_000),
        ("10kB", 10_000),
        ("10KB", 10_000),
        ("64Mb", None),
        ("64mib", None),
        ("1e6", None),
        ("64M", None),
        ("-1", None),
        ("true", None),
        ("null", None),
        (".nan", None),
        ("1e999", None),
        ("9" * 400 + "MiB", None),
    ],
)
def test_bytes_with_units(file: Path, text: str, expected: int | None) -> None:
    if expected is None:
        assert len(problems(file, f"server: {{max_body_bytes: {text}}}")) == 1
    else:
        assert loaded(file, f"server: {{max_body_bytes: {text}}}").server.max_body_bytes == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2.0), ("0.5", 0.5), ("500ms", 0.5), ("5s", 5.0), ("nan", None), (".nan", None), (".inf", None),
     ("inf", None), ("9" * 400, None), ("5m", None), ("-1", None), ("1e999", None)],
)  # fmt: skip
def test_durations_are_finite_seconds(file: Path, text: str, expected: float | None) -> None:
    if expected is None:
        assert len(problems(file, f"server: {{settle_s: {text}}}")) == 1
    else:
        assert loaded(file, f"server: {{settle_s: {text}}}").server.settle_s == expected


def test_pixels_may_be_written_as_a_product(file: Path) -> None:
    settings = loaded(file, "models: {m: {max_pixels: 1280x32x32}}\nbackends: [{url: 'http://a', max_pixels: 1000}]\n")
    assert settings.models["m"].max_pixels == 1_310_720
    assert settings.backends[0].max_pixels == 1000


def test_a_float_that_is_whole_is_a_whole_number(file: Path) -> None:
    assert loaded(file, "server: {port: 80.0}").server.port == 80
    assert problems(file, "server: {port: 80.5}") == ["server.port: must be a whole number, not 80.5"]


def test_backends_as_text_or_mapping(file: Path) -> None:
    settings = loaded(file, "backends: ['http://a:1', {url: 'http://b:2', engine: sglang, name: two}]")
    assert settings.backends == (BackendConfig(url="http://a:1"), BackendConfig("http://b:2", "two", "sglang"))
    assert problems(file, "backends: 'http://a:1'") == ["backends: must be a list, not text"]


@pytest.mark.parametrize(
    ("backends", "words"),
    [
        ("['ftp://a']", "backends.0.url: must be an http:// or https:// URL"),
        ("[{name: x}]", "backends.0.url: must be an http:// or https:// URL"),
        ("['http://a:1', 'http://a:1/v1']", "backends.1: a:1 is given twice"),
        ("[{url: 'http://a', name: x}, {url: 'http://b', name: x}]", "backends.1: x is given twice"),
        ("['http://user:secret-word@a:1']", "backends.0.url: holds credentials"),
    ],
)  # fmt: skip
def test_backends_that_cannot_be(file: Path, backends: str, words: str) -> None:
    (problem,) = problems(file, f"backends: {backends}")
    assert problem.startswith(f"settings: {words}")
    assert "secret-word" not in problem


def test_two_listeners_on_one_port_are_refused_unless_the_system_chooses(file: Path) -> None:
    assert problems(file, "server: {port: 9464}") == ["settings: server.admin_port: must differ from server.port"]
    assert loaded(file, "server: {port: 0, admin_port: 0}").server.port == 0


def test_networks_are_looked_at(file: Path) -> None:
    (problem,) = problems(file, "fetch: {public_networks: [10.0.0.0/40]}")
    assert problem.startswith("settings: fetch.public_networks: ")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("server: {port: 1}\nserver: {port: 2}", "2:1: the key 'server' is given twice"),
        ("server:\n  port: 1\n  port: 2", "3:3: the key 'port' is given twice"),
        ("a: " + "[" * 5_000, "is nested too deeply"),
        ("server: {host: 2026-02-30}", "holds a value that cannot be read: day is out of range for month"),
        ("server: {host: a\0b}", "is not YAML: it holds characters YAML does not allow"),
        ("server: [", "1:"),
        ("server: !!python/object:os.system {}", "1:9: "),
        ("? [a]\n: 1", "1:3: a key must be a plain word"),
        ("- 1", "document: must be a mapping, not a list"),
    ],
)  # fmt: skip
def test_what_is_not_plain_yaml_is_told_with_line_and_column(file: Path, text: str, where: str) -> None:
    (problem,) = problems(file, text)
    assert problem.startswith(where)


def test_policies_are_beside_the_file(file: Path) -> None:
    assert loaded(file, "policies: rules").policies == str(file.parent / "rules")
    assert loaded(file, "policies: /etc/rules").policies == "/etc/rules"
    assert loaded(file, "", VLMGW_POLICIES="rules").policies == "rules"


def test_secrets_are_masked_and_never_repeated_in_a_problem(file: Path) -> None:
    text = "identity: {secret: hush-hush-0123456789}\nbackends: [{url: 'http://a', api_key: sk-hush}, 'http://b']\n"
    shown = masked(loaded(file, text))
    assert "hush" not in str(shown)
    assert shown["identity"] == {"secret": "***"}
    assert [backend["api_key"] for backend in shown["backends"]] == ["***", None]
    assert shown["server"]["port"] == 8080
    assert "12345678" not in str(problems(file, "identity: {secret: 12345678}"))


PATHS = sorted(leaf_paths())


@given(
    st.dictionaries(
        st.sampled_from(PATHS),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers())),
        max_size=6,
    )
)
def test_any_flags_give_settings_or_problems(flags: dict[str, object]) -> None:
    with contextlib.suppress(SettingsProblems):
        assert masked(load_settings(environment={}, flags=flags)).keys() == masked(Settings()).keys()


def test_the_slab_holds_at_least_one_body(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("media: {slab_bytes: 32MiB}\nserver: {max_body_bytes: 64MiB}\n")
    with pytest.raises(SettingsProblems, match="slab_bytes"):
        load_settings(file, environment={})


def test_an_empty_secret_is_a_mistake_and_not_a_way_in(file: Path) -> None:
    told = problems(file, "{}", VLMGW_ADMIN_TOKEN="", VLMGW_IDENTITY_SECRET="")
    assert told == [
        "environment: VLMGW_ADMIN_TOKEN: is empty, as anybody could guess; give one or leave it out",
        "settings: identity.secret: is empty; give one or leave it out",
    ]
