"""What a supervisor and its processes tell each other. The rest is real processes' (`test_supervisor`)."""

from __future__ import annotations

import os
import subprocess

import msgspec

from gateway.app import Listening
from gateway.cli.sibling import COMMAND, Part, Report, report
from tests.cli.command import NOBODY


def test_what_is_told_arrives() -> None:
    part = Part({"server.port": 1, "backends": [{"url": NOBODY, "max_pixels": None}]}, "a.yaml", b"\0\xff" * 16, 7, 8)
    assert msgspec.json.decode(part.written(), type=Part) == part


def test_a_report_is_told_once_and_ends() -> None:
    reading, writing = os.pipe()
    report(writing, Listening(data=1, admin=2))
    with os.fdopen(reading, "rb") as pipe:
        assert msgspec.json.decode(pipe.read(), type=Report) == Report(2)


def test_one_whose_supervisor_is_gone_does_not_begin() -> None:
    orphan = Part({}, None, b"", supervisor_pid=1, report_fd=1)
    ran = subprocess.run(COMMAND, input=orphan.written(), capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"")
