"""Every check sees what is wrong: for each key of each table one subject that passes and one that does not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.case_runner import pictures, pointer
from tests.case_runner.checks.backend import BACKEND
from tests.case_runner.checks.client import CLIENT, ERROR, endings
from tests.case_runner.checks.images import _CONSTRAINTS, IMAGES
from tests.case_runner.checks.table import Table
from tests.case_runner.checks.verdict import WHOLE, judge
from tests.case_runner.example import Example
from tests.case_runner.examples_bodies import BACKEND_EXAMPLES, CLIENT_EXAMPLES, ERROR_EXAMPLES
from tests.case_runner.examples_cases import RELATION_EXAMPLES, SERVED, WHOLE_EXAMPLES
from tests.case_runner.examples_images import CONSTRAINT_EXAMPLES, IMAGE_EXAMPLES, picture, picture_file
from tests.case_runner.observation import Scope
from tests.case_runner.specimens import RED, data_url, observation, response, scope

TABLES: dict[str, tuple[Table[Any], dict[str, Example]]] = {
    "images": (IMAGES, IMAGE_EXAMPLES),
    "constraints": (_CONSTRAINTS, CONSTRAINT_EXAMPLES),
    "backend": (BACKEND, BACKEND_EXAMPLES),
    "client": (CLIENT, CLIENT_EXAMPLES),
    "error": (ERROR, ERROR_EXAMPLES),
    "whole": (WHOLE, WHOLE_EXAMPLES),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_key_has_an_example(name: str) -> None:
    table, examples = TABLES[name]
    assert set(examples) == set(table.checks)


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, (_, examples) in TABLES.items() for key in examples])
def test_a_check_passes_what_is_right_and_reports_what_is_wrong(name: str, key: str) -> None:
    table, examples = TABLES[name]
    example = examples[key]
    expect = {key: example.wanted, **(example.rest or {})}
    assert list(table.judge(example.good, expect)) == []
    assert list(table.judge(example.bad, expect)) != []


@pytest.mark.parametrize("name", TABLES)
def test_an_unknown_key_is_a_failure(name: str) -> None:
    table, examples = TABLES[name]
    subject = next(iter(examples.values())).good
    assert "does not know" in next(iter(table.judge(subject, {"no_such_key": 1})))


@pytest.mark.parametrize(("relation", "good", "bad"), RELATION_EXAMPLES)
def test_a_relation_holds_or_is_reported(
    relation: dict[str, Any], good: Callable[[], Scope], bad: Callable[[], Scope]
) -> None:
    assert list(WHOLE.judge(good(), {"relations": [relation]})) == []
    assert list(WHOLE.judge(bad(), {"relations": [relation]})) != []


def test_an_unknown_relation_or_rule_is_a_failure() -> None:
    seen = scope(SERVED, SERVED).seen
    assert judge(seen, {"relations": [{"likes": "equal"}]})
    assert judge(seen, {"relations": [{"json": "/model", "rule": "rhymes"}]})
    assert judge(seen, {"relations": [{"forwarded_uuid": "perhaps"}]})


def test_a_missing_step_is_reported() -> None:
    assert judge(observation(SERVED), {"steps": [{"status": 200}, {"status": 200}]})


def test_an_unknown_key_inside_an_alternative_does_not_make_it_hold() -> None:
    assert judge(observation(SERVED), {"alternatives": [{"status": 200, "no_such_key": 1}]})


def test_endings_are_told_apart() -> None:
    def ended(body: bytes, ending: Any = "complete") -> set[str]:
        made = response(200, body)
        made.ending = ending
        return endings(made)

    assert ended(b'data: {"error": {"message": "x"}}\n\n') == {"error-event-then-close", "complete"}
    assert ended(b"event: error\ndata: {}\n\n") == {"error-event-then-close", "complete"}
    assert ended(b"data: {}\n\n") == {"complete"}
    assert ended(b"data: {}\n\n", "aborted") == {"aborted-transfer"}
    assert endings(response(None)) == {"closed-without-response"}


@pytest.mark.parametrize(
    ("where", "rgb"),
    [
        ({"rel": "any", "rgb": [0, 0, 0], "tol": 4}, RED),
        ({"rel": [0.5, 0.5], "dominant": "green"}, RED),
        ({"rel": [0.5, 0.5], "dominant": "white"}, (255, 255, 199)),
        ({"rel": [0.5, 0.5], "dominant": "black"}, (0, 0, 80)),
    ],
)
def test_a_wrong_colour_is_reported(where: dict[str, Any], rgb: tuple[int, int, int]) -> None:
    assert pictures.pixel_problem(picture(data_url(rgb=rgb)), where) is not None


def test_a_cut_or_broken_picture_does_not_decode() -> None:
    whole = pictures.picture_bytes(data_url())[1]
    jpeg = picture_file(".jpg").picture.data
    for data in (whole[:-20], whole[:60], jpeg[: len(jpeg) // 2], b"", b"\0" * 100, b"<html>"):
        with pytest.raises(pictures.BadPicture):
            pictures.decode(data)


def test_numbers_keep_their_value() -> None:
    assert pointer.parse(b'{"a": 0.10}') == {"a": Decimal("0.10")}
