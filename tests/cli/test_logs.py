"""``logs``: one row a request, filters, and nothing lost of what is no line of ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gateway.cli.logs import Wanted, exchange_row
from gateway.types import Size
from tests.cli.command import run
from tests.policy.examples import policy_set
from tests.replay.examples import line_of, recorded

SERVED = line_of(recorded(policy_set(default="rules: {max_pixels: 100000}\n"), Size(4032, 3024), Size(64, 64)))
LINE = json.loads(SERVED)
REFUSED = json.dumps({
    "time": 1.5, "event": "exchange", "request_id": "r2", "status": 400, "outcome": "rejected",
    "code": "too_many_images", "rule": "max_images", "total_ms": 3.25, "tenant": "acme",
    "stages_ms": {"read": 1.0, "check": 2.25},
})  # fmt: skip
WARNED = json.dumps({"time": 2.0, "level": "warning", "event": "backend_down", "backend": "b:1", "returns": 2})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.log"
    lines = [b"Serving 2 backend(s).", SERVED, b"2026-11-29T10:00:00Z stdout F " + REFUSED.encode(), WARNED.encode()]
    path.write_bytes(b"\n".join([*lines, b"{broken", b'{"event": 3}']) + b"\n")
    return path


def test_every_line_is_a_row(log: Path) -> None:
    done = run("logs", str(log))
    assert done.code == 0
    serving, served, refused, warned, broken, other = done.out.splitlines()
    assert (serving, broken, other) == ("Serving 2 backend(s).", "{broken", '{"event": 3}')
    assert LINE["request_id"] in served
    assert f"({LINE['decision']})" in served
    assert "2 images (" in served
    assert "image tokens" in served
    assert "400 rejected" in refused
    assert "acme  too_many_images max_images  r2" in refused
    assert "warning backend_down  backend=b:1  returns=2" in warned


def test_only_what_is_asked_for(log: Path) -> None:
    for flags in (("--tenant", "acme"), ("--failed",), ("--code", "too_many_images"), ("--request", "r2")):
        (row,) = run("logs", str(log), *flags).out.splitlines()
        assert "too_many_images" in row
    nobody = run("logs", str(log), "--tenant", "nobody")
    assert (nobody.code, nobody.out, nobody.err) == (0, "", "No line is what was asked for.\n")


def test_the_beginning_of_an_id_is_enough(log: Path) -> None:
    (row,) = run("logs", str(log), "--request", LINE["request_id"][:6]).out.splitlines()
    assert LINE["request_id"] in row
    assert run("logs", str(log), "--request", LINE["request_id"][1:]).out == ""


def test_a_level_asks_for_other_lines(log: Path) -> None:
    assert run("logs", str(log), "--level", "error", "--json").out == ""
    assert json.loads(run("logs", str(log), "--level", "warning", "--json").out) == json.loads(WARNED)
    both = run("logs", str(log), "--level", "warning", "--failed").out.splitlines()
    assert ["r2" in row or "backend_down" in row for row in both] == [True, True]


def test_stages_come_with_the_longest_first(log: Path) -> None:
    _, stages = run("logs", str(log), "--failed", "--stages").out.splitlines()
    assert stages.strip() == "check 2.2  read 1.0"


def test_json_is_the_lines_themselves(log: Path) -> None:
    lines = run("logs", str(log), "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == [LINE, json.loads(REFUSED), json.loads(WARNED)]


def test_gzip_and_standard_input(log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "old.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert run("logs", str(packed)).out == run("logs", str(log)).out
    assert run("logs", stdin=log.read_text()).out == run("logs", str(log)).out


def test_wrong_usage(log: Path, tmp_path: Path) -> None:
    for arguments, told in (
        ((str(tmp_path / "none"),), "cannot be read"),
        ((str(log), "--level", "loud"), "--level loud"),
        ((str(log), str(log), "--follow"), "one file"),
    ):
        done = run("logs", *arguments)
        assert done.code == 2
        assert told in done.err


def test_odd_values_do_not_stop_the_reading() -> None:
    odd = {"event": "exchange", "images": [], "estimate": 3, "stages_ms": None, "time": "?", "total_ms": None}
    assert "---" in exchange_row(odd).plain
    assert not Wanted(slower_ms=1).takes(odd)
    assert Wanted().takes(odd)


def test_no_line_stops_the_reading(tmp_path: Path) -> None:
    odd = tmp_path / "odd.log"
    lines = [
        '{"event":"deep","of":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"event":"exchange","time":Infinity,"total_ms":NaN,"images":{"passed":NaN},"estimate":{"prompt":-Infinity}}',
        '{"event":"exchange","time":1e30,"total_ms":' + "9" * 400 + "}",
        '{"event":"exchange","model":"\\ud800","tenant":"\\udfff","status":200,"outcome":"ok"}',
        '{"event":"after"}',
    ]
    odd.write_text("\n".join(lines) + "\n")
    for flags in ((), ("--json",), ("--stages",)):
        done = run("logs", str(odd), *flags)
        assert done.code == 0
        assert "after" in done.out.splitlines()[-1]


def test_nothing_that_a_client_wrote_is_obeyed_by_the_terminal(tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.log"
    said = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202egpj.\u2028\r\x7f"
    lines = [
        {"event": "exchange", "tenant": said, "code": f"a\nb{said}", "stages_ms": {said: 1}},
        {"event": said, "f": said},
    ]
    hostile.write_text("\n".join([*map(json.dumps, lines), said.replace("\u2028", "")]) + "\n")
    for flags in ((), ("--stages",), ("--json",)):
        done = run("logs", str(hostile), *flags)
        assert done.code == 0
        assert all(line.isprintable() for line in done.out.split("\n"))
    row = run("logs", str(hostile)).out.split("\n")[0]
    assert "\N{SYMBOL FOR ESCAPE}[2J" in row
    assert "a\N{SYMBOL FOR LINE FEED}b" in row


def test_a_log_that_ends_in_the_middle_is_shown_as_far_as_it_goes(log: Path, tmp_path: Path) -> None:
    whole = gzip.compress(log.read_bytes())
    for name, content in (("cut", whole[:-9]), ("damaged", whole[:-8] + b"\xff" * 8), ("head", whole[:2])):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(content)
        done = run("logs", str(packed), str(log))
        assert done.code == 1
        assert f"{name}.gz: cannot be read to its end" in done.err
        assert done.out.count("too_many_images") == (1 if name == "head" else 2)
