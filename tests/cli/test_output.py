"""Results on standard output, everything else on standard error."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from gateway.cli import output
from gateway.cli.output import fail, say, show_json, show_table


def test_a_failure_is_said_with_its_problems_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    error = fail("It cannot be used:", ["first [bold]", "second"], code=2)
    said = capsys.readouterr()
    assert error.exit_code == 2
    assert said.out == ""
    assert said.err == "It cannot be used:\n  first [bold]\n  second\n"


def test_what_happens_is_said_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    say("on [port] 1")
    assert capsys.readouterr() == ("", "on [port] 1\n")


def test_json_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"name": "Ä"})
    out = capsys.readouterr().out
    assert "Ä" in out
    assert json.loads(out) == {"name": "Ä"}


def test_numbers_stand_to_the_right_and_text_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("Title", ("name", "count"), [["a", "1,000"], ["longer", "2"], ["none", ""]])
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.strip().startswith("longer"))
    first = next(line for line in lines if line.strip().startswith("a "))
    assert row.rindex("2") == first.rindex("0")
    assert row.index("longer") == first.index("a")


def test_what_stands_in_brackets_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("Formats [bold]", ("setting", "value"), [["formats", "[jpeg, png, webp]"]])
    out = capsys.readouterr().out
    assert "Formats [bold]" in out
    assert "[jpeg, png, webp]" in out


def test_a_row_that_a_terminal_cannot_hold_becomes_a_paragraph(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_results", Console(highlight=False, soft_wrap=True, width=40))
    columns = ("picture", "size", "sent", "none", "why")
    show_table("Title", columns, [["phone-12mp", "4032x3024", "1312x960", "", "resized, orientation"]])
    assert capsys.readouterr().out.splitlines() == [
        "Title",
        "",
        "  phone-12mp",
        "    size 4032x3024; sent 1312x960;",
        "    why resized, orientation",
    ]
