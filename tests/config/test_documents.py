"""A YAML document as plain values; what the whole program makes of one is in ``test_sources``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.documents import SettingsProblems, plain_values, read_document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.yaml"


def test_plain_values() -> None:
    assert plain_values("server: {admin_port: 9000}\nbackends: [a, 1, 0.5, true, null]", "here") == {
        "server": {"admin_port": 9000},
        "backends": ["a", 1, 0.5, True, None],
    }
    assert plain_values("", "here") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2", "here:2:1: the key 'a' is given twice"),
        ("a: [", "here:1:5: "),
        ("a: " + "[" * 5_000, "here: is nested too deeply"),
        ("a: 2026-02-30", "here: holds a value that cannot be read"),
    ],
)
def test_mistakes_of_form_are_told_with_their_place(text: str, problem: str) -> None:
    with pytest.raises(SettingsProblems) as raised:
        plain_values(text, "here")
    assert raised.value.problems[0].startswith(problem)


def test_a_file_that_cannot_be_read(file: Path) -> None:
    with pytest.raises(SettingsProblems, match="cannot be read: No such file"):
        read_document(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsProblems, match="cannot be read"):
        read_document(file)
