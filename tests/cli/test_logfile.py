"""Logs as they are read: followed through rotation and truncation."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from gateway.cli.logfile import followed, opened


def test_a_followed_file_is_read_on_through_rotation_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    lines = followed(str(path))
    assert next(lines) == b"one\n"
    with path.open("ab") as stream:
        stream.write(b"two\n")
    assert next(lines) == b"two\n"
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"three, in a new file\n")
    assert next(lines) == b"three, in a new file\n"
    path.write_bytes(b"four\n")
    assert next(lines) == b"four\n"
    lines.close()


def test_what_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        next(followed(str(tmp_path / "none")))
    with pytest.raises(typer.Exit), opened(str(tmp_path / "none")):
        pass
    assert capsys.readouterr().err.count("cannot be read") == 2
