"""Tables that others wrote: other line ends, marks, capitals and columns are read, broken ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.tables import Kind, groups_in

HEADER = "family,checkpoint,params_json,width,height,n_images,tokens"
ROW = "qwen2_vl,Qwen/Qwen2-VL-7B-Instruct,{},28,28,1,4"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"{HEADER}\n{ROW}\n"),
        ("a.csv", f"\ufeff{HEADER}\r\n{ROW}\r\n"),
        ("A.CSV", f"{HEADER.replace(',', ' , ')},more\n{ROW},1\n"),
    ],
)
def test_a_table_is_known_by_its_header(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    (group,) = groups_in(tmp_path)
    assert (group.kind, group.first["tokens"]) == (Kind.IMAGES, "4")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", f"{HEADER}\nqwen2_vl\n".encode(), f"{HEADER}\n{ROW},5\n".encode()]
)
def test_a_broken_table_is_told_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.csv"):
        groups_in(tmp_path)


def test_no_directory_has_no_tables(tmp_path: Path) -> None:
    assert groups_in(tmp_path / "nowhere") == []
