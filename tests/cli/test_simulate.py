"""``simulate``: logs in, tables, JSON and a chart out; whatever else a log holds is passed over by name."""

from __future__ import annotations

import gzip
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gateway.types import Size
from tests.cli.command import run, start
from tests.policy.examples import policy_set
from tests.replay.examples import line_of, recorded

SIZES = (Size(2048, 2048), Size(512, 512), Size(640, 480))
SERVED = line_of(recorded(policy_set(), *SIZES))
SHADOWED = line_of(
    recorded(policy_set(default="mode: shadow\nrules: {max_images: 2, max_pixels: 100000}\n"), *SIZES[1:], Size(64, 64))
)
BAD = b'{"event":"exchange","estimate":{"image":"many"}}'
OTHER = b'{"event":"reload"}'
OLD = b'{"event":"exchange","outcome":"ok"}'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join([b"Started.", SERVED, OTHER, BAD, b"time stdout F " + SERVED, OLD, SHADOWED]) + b"\n")
    return path


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "default.yaml").write_text("rules: {max_pixels: 65536}\n")
    return folder


def test_tokens_refusals_and_money_before_and_after(log: Path, policies: Path) -> None:
    done = run(
        "simulate", str(log), "--policies", str(policies), "--token-price", "1000", "--gpu-hour-price", "2", "--json"
    )
    assert done.code == 0
    assert f"{log}:4: Expected `int`, got `str` - at `$.estimate.image`" in done.err
    told = done.json
    assert told["read"] | {"bad": []} == {"lines": 7, "exchanges": 4, "without_sizes": 1, "bad_lines": 1, "bad": []}
    (row,) = told["rows"]
    assert (row["tenant"], row["task"], row["requests"], row["compared"]) == ("default", "chat", 3, 3)
    assert row["after"]["image_tokens"] < row["before"]["image_tokens"]
    assert row["images_changed"] == {"max_pixels": 8}
    assert row["saved"] == pytest.approx(row["before"]["cost"] - row["after"]["cost"], abs=1e-5)
    assert row["saved"] > 0
    assert told["total"]["saved"] == row["saved"]


def test_against_other_policies_and_as_a_table(log: Path, policies: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "default.yaml").write_text("rules: {max_images: 2}\n")
    picture = tmp_path / "out.svg"
    done = run(
        "simulate", str(log), "--policies", str(policies), "--against", str(old), "--plot", str(picture),
        "--token-price", "1",
    )  # fmt: skip
    assert done.code == 0
    assert "Before and after" in done.out
    assert "By rule" in done.out
    assert "max_images" in done.out
    assert "refused 3 -> 0" in done.err
    assert ElementTree.parse(picture).getroot() is not None
    assert done.out == run("simulate", str(log), "--policies", str(policies), "--against", str(old),
                           "--token-price", "1").out  # fmt: skip


def test_packed_logs_and_standard_input(log: Path, policies: Path, tmp_path: Path) -> None:
    packed, cut = tmp_path / "access.log.1.gz", tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    cut.write_bytes(packed.read_bytes()[:-20])
    found = run("simulate", str(packed), str(cut), "--policies", str(policies), "--json")
    assert found.json["rows"][0]["requests"] >= 3
    assert f"{cut}:" in found.err


def test_what_shadow_mode_found(log: Path) -> None:
    (row,) = run("simulate", "--shadow", str(log), "--json").json["rows"]
    assert (row["requests"], row["would_be_refused"]) == (1, 1)
    assert row["findings"] == {"too_many_images:max_images": 1}
    done = run("simulate", "--shadow", str(log))
    assert "too_many_images:max_images" in done.out
    assert "1 of 4 exchanges in shadow mode: 1 would have been refused, 0 changed; 1 bad line(s)." in done.err


def test_many_bad_lines_are_told_shortly(tmp_path: Path) -> None:
    log = tmp_path / "bad.log"
    log.write_bytes((BAD + b"\n") * 200)
    done = run("simulate", "--shadow", str(log), "--json")
    assert len(done.json["read"]["bad"]) == 100
    assert done.json["read"]["bad_lines"] == 200
    assert "... and 190 more lines that could not be read." in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Give --policies DIR"),
        (("--shadow", "--policies", "."), "Give --policies DIR"),
        (("--shadow", "--plot", "x.svg"), "Give --policies DIR"),
        (("--policies", "{new}", "--plot", "x.png"), "only .svg files can be drawn"),
        (("--policies", "{new}", "missing.log"), "missing.log: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: tuple[str, ...], words: str, log: Path, policies: Path) -> None:
    done = run("simulate", str(log), *[each.replace("{new}", str(policies)) for each in arguments])
    assert done.code == 2
    assert words in done.err


def test_a_log_without_exchanges_is_said(tmp_path: Path, policies: Path) -> None:
    log = tmp_path / "empty.log"
    log.write_bytes(OTHER + b"\n")
    done = run("simulate", str(log), "--policies", str(policies))
    assert (done.code, "No exchange that could be replayed" in done.err) == (1, True)


def test_it_is_a_command(log: Path) -> None:
    assert start("simulate", "--shadow", str(log)).code == 0
