"""Reading cases: placeholders, settings, grouping; what cannot be read fails its case by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from gateway.config.policies import load_policies
from gateway.config.sources import load_settings
from tests.case_runner.cases import Names, find_cases, read_case, static_answers
from tests.case_runner.checks.verdict import WHOLE
from tests.case_runner.gateway_process import ROOT
from tests.case_runner.performance import raw_path
from tests.case_runner.settings import UnknownSetting, effective, gateway_files
from tests.case_runner.topology import CHAT


def _write(folder: Path, expect: dict[str, Any] | None = None, **spec: Any) -> Path:
    folder.mkdir()
    (folder / "case.json").write_text(json.dumps({"id": folder.name, "kind": "k", **spec}))
    (folder / "expect.json").write_text(json.dumps(expect or {"status": 200}))
    return folder


def test_every_shared_case_can_be_read_and_every_key_of_it_is_known() -> None:
    cases = find_cases(ROOT / "tests" / "cases")
    assert len(cases) > 150
    assert [case.id for case in cases if case.problem is not None] == []
    known = WHOLE.checks.keys() | WHOLE.informs.keys()
    assert {case.id: case.expect.keys() - known for case in cases if case.expect.keys() - known} == {}


def test_cases_are_chosen_by_kind_and_one_folder_may_be_a_case(tmp_path: Path) -> None:
    one = _write(tmp_path / "a--1")
    _write(tmp_path / "b--1", kind="other")
    assert [case.id for case in find_cases(tmp_path)] == ["a--1", "b--1"]
    assert [case.id for case in find_cases(tmp_path, ["other"])] == ["b--1"]
    assert [case.id for case in find_cases(one)] == ["a--1"]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"settings": {"no.such": 1}}, "no.such"),
        ({"wishes": 1}, "wishes"),
        ({"settings": {"model.factor": 3}}, "factor 3"),
    ],
)
def test_what_cannot_be_mapped_is_named(tmp_path: Path, spec: dict[str, Any], named: str) -> None:
    problem = read_case(_write(tmp_path / "a--1", **spec)).problem
    assert named in (problem or "")


def test_cases_share_a_gateway_only_when_they_want_the_same_and_harm_nobody(tmp_path: Path) -> None:
    plain, equal = read_case(_write(tmp_path / "a")), read_case(_write(tmp_path / "b"))
    other = read_case(_write(tmp_path / "c", settings={"limits.max_images": 4}))
    measured = read_case(_write(tmp_path / "d", expect={"max_rss_growth_mb": 1}))
    operated = read_case(_write(tmp_path / "e", steps=[{"do": "kill_main"}]))
    placed = read_case(_write(tmp_path / "f", expect={"relations": [{"replica": "equal", "of": ["step1", "step2"]}]}))
    assert plain.group() == equal.group()
    assert len({case.group() for case in (plain, other, measured, operated, placed)}) == 5


def test_placeholders_are_filled_and_every_random_value_is_another() -> None:
    names = Names({"origin_host": "o.example.test:1"}, random.Random(1))
    assert names.fill("http://{{origin_host}}/{{unknown}}") == "http://o.example.test:1/{{unknown}}"
    first, second = names.fill("{{random}} {{random}}").split(" ")
    assert first != second
    assert names.used_random == {first, second}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: a\r\n\r\n", "/v1/messages"),
        (b"POST http://gateway.test:80/v1/responses?x HTTP/1.1\r\n\r\n", "/v1/responses"),
        (b"\x16\x03\x01\x02", CHAT),
        (b"GET\r\n\r\n", CHAT),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", CHAT),
    ],
)
def test_a_raw_request_says_which_path_it_is_about(line: bytes, path: str) -> None:
    assert raw_path(line) == path


@pytest.mark.parametrize(
    ("answers", "written"),
    [
        ("public", "127.0.0.9"),
        (["10.0.0.7", "public"], "10.0.0.7,127.0.0.9"),
        ([["public"], ["127.0.0.1"]], "127.0.0.9;127.0.0.1"),
    ],
)
def test_names_are_answered_as_origin_json_says(answers: Any, written: str) -> None:
    assert static_answers(answers) == written


def test_the_gateway_takes_every_setting(tmp_path: Path) -> None:
    whole = effective(
        {
            "limits.max_images": 4, "stream.keepalive_s": 1, "auth.keys": {"a": "org_1", "b": "org_2", "c": "org_1"},
            "budget.kv_tokens": 1000, "isolation.salt": True, "image.background": [1, 2, 3], "model.factor": 32,
        }
    )  # fmt: skip
    files = gateway_files(whole, ["http://127.0.0.1:1"], {"a.example.test": "127.0.0.9"})
    policies = tmp_path / "policies"
    policies.mkdir()
    for name, content in files.policies.items():
        (policies / name).write_text(json.dumps(content))
    config = tmp_path / "gateway.yaml"
    config.write_text(json.dumps({**files.gateway, "policies": str(policies)}))
    settings = load_settings(config, flags={})
    assert settings.server.keepalive_comment_s == 1
    assert settings.fetch.static_hosts == {"a.example.test": "127.0.0.9"}
    assert load_policies(policies) is not None
    assert len(files.policies) == 3


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(UnknownSetting):
        effective({"image.colour": "red"})
