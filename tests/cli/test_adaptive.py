"""``adaptive``: what the rule would do to a folder, decoded by workers, written nowhere."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import draw_pictures, run, start
from tests.simulator import drawn

CAP = ("--max-pixels", str(1280 * 32 * 32))


def test_a_folder_is_told_with_and_without_the_rule(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    below = pictures / "below"
    below.mkdir()
    (below / "large.png").write_bytes(drawn.png(2400, 1800))
    before = {path: path.read_bytes() for path in pictures.rglob("*.*")}
    ran = start("adaptive", str(pictures), *CAP, "--floor-pixels", "256x256", "--json")
    assert ran.code == 1  # one of them is broken
    assert "broken.png: " in ran.err
    rows = {row["image"]: row for row in ran.json["images"]}
    assert ran.json["adaptive"] == {"floor_pixels": 65_536, "halving_psnr_db": 31}
    assert rows["broken.png"]["error"] == "image_undecodable"
    for name in ("photograph.jpg", "large.png", "turned.jpg", "drawing.png"):
        row = rows[name]
        assert row["tokens"] <= row["tokens_under_caps"]
        assert (row["why"] == "adapted") is (row["adapted"] != row["under_caps"])
        assert row["psnr_db"] <= row["psnr_under_caps_db"]
    totals = ran.json["totals"]
    assert totals["images"] == 4
    assert totals["tokens"] == sum(row.get("tokens", 0) for row in rows.values())
    assert {path: path.read_bytes() for path in pictures.rglob("*.*")} == before


def test_a_table_ends_in_a_sum(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    ran = start("adaptive", str(pictures / "drawing.png"), "--halving-psnr-db", "20")
    assert ran.code == 0
    assert "halving_psnr_db 20" in ran.out
    assert "99.0: nothing lost" in ran.err.replace("\n", " ")
    assert ran.out.splitlines()[-1].startswith("1 image, 0 smaller: ")


def test_wrong_usage(tmp_path: Path) -> None:
    ran = run("adaptive", str(tmp_path))
    assert ran.code == 2
    assert "No images are in" in ran.err
    assert run("adaptive", str(tmp_path), "--halving-psnr-db", "5").code == 2
