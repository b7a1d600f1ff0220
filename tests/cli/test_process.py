"""``process``: files in, what an engine would get out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.case_runner.pictures import decode
from tests.cli.command import draw_pictures, run, start

CAP = ("--max-pixels", str(1280 * 32 * 32))


def test_files_are_written_and_told(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    files = [str(path) for path in sorted(pictures.iterdir())]
    ran = start("process", *files, "-o", str(tmp_path / "out"), *CAP, "--json")
    assert ran.code == 1  # one of them is broken
    rows = {row["image"]: row for row in ran.json}
    assert rows["broken.png"]["error"] == "image_undecodable"
    assert "broken.png: " in ran.err
    assert (rows["photograph.jpg"]["delivered"], rows["photograph.jpg"]["tokens"]) == ("1312x960", 1230)
    assert rows["turned.jpg"]["why"] == "orientation"
    assert rows["drawing.png"]["why"] == "passed untouched"
    delivered = decode(Path(rows["photograph.jpg"]["file"]).read_bytes())
    assert (delivered.width, delivered.height) == (1312, 960)
    turned = decode(Path(rows["turned.jpg"]["file"]).read_bytes())
    assert (turned.width, turned.height, turned.orientation) == (480, 640, 0)
    assert Path(rows["drawing.png"]["file"]).read_bytes() == (pictures / "drawing.png").read_bytes()


def test_a_table_of_what_was_done(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    ran = start("process", str(pictures / "photograph.jpg"), "-o", str(tmp_path / "out"), "--task", "ocr")
    assert ran.code == 0
    assert "task ocr" in ran.out
    assert "2000x1500" in ran.out


def test_what_the_policy_refuses_is_not_written(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "default.yaml").write_text("rules: {formats: [png], max_input_side: 1000}\n")
    (pictures / "manifest.json").write_text("{}")
    ran = start("process", str(pictures), "-o", str(tmp_path / "out"), "--policies", str(policies))
    assert ran.code == 1
    assert "turned.jpg: The image is JPEG, accepted are png." in ran.err
    assert "no image's or video's: manifest.json\n" in ran.err
    assert "manifest.json:" not in ran.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["drawing.png"]


def test_a_folder_without_pictures_is_named(tmp_path: Path) -> None:
    (tmp_path / ".hidden.png").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"")
    ran = run("process", str(tmp_path), "-o", str(tmp_path / "out"))
    assert (ran.code, ran.err) == (2, f"There is no image or video in {tmp_path}.\n")


def test_no_original_and_no_other_result_is_overwritten(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "in")
    twin = draw_pictures(tmp_path / "twin") / "photograph.jpg"
    photograph = pictures / "photograph.jpg"
    before = photograph.read_bytes()
    ran = start("process", str(photograph), str(twin), "-o", str(pictures), *CAP, "--json")
    assert ran.code == 0
    assert [Path(row["file"]).name for row in ran.json] == ["photograph-2.jpg", "photograph-3.jpg"]
    assert photograph.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "out", "--tenant", "nobody"], "nobody"),
        (["-o", "out", "--task", "dance"], "allowed here: chat"),
        (["-o", "out", "--policies", "no-such-folder"], "there is no such folder"),
        ([], "--output"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], said: str) -> None:
    photograph = str(draw_pictures(tmp_path) / "photograph.jpg")
    ran = start("process", photograph, *[word.replace("out", str(tmp_path / "out")) for word in arguments])
    assert ran.code == 2, ran.err
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "pictures")
    output = tmp_path / "out"
    (output / "drawing.png").mkdir(parents=True)
    ran = start("process", str(pictures / "drawing.png"), "-o", str(output))
    assert ran.code == 1
    assert ran.err == f"Cannot write {output / 'drawing.png'}: Is a directory.\n"
