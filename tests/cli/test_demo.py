"""``demo``: gateway, two engines and a client, as processes, with pictures of one's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from openai import OpenAI

from tests.cli.command import draw_pictures, run, start
from tests.simulator import drawn

pytestmark = pytest.mark.slow


def test_once_with_pictures_of_one_s_own(tmp_path: Path) -> None:
    ran = start("demo", "--once", "--images", str(draw_pictures(tmp_path)), "--json")
    assert ran.code == 0, ran.err
    rows = ran.json
    by_default = {row["picture"]: row for row in rows if row["task"] == "chat"}
    assert by_default["broken.png"]["error"] == "image_undecodable"
    photograph = by_default["photograph.jpg"]
    assert (photograph["size"], photograph["sent_size"]) == ("2000x1500", "1312x960")
    assert photograph["sent_bytes"] < photograph["bytes"]
    assert photograph["tokens_uncapped"] > photograph["tokens"] == 1230
    assert by_default["turned.jpg"]["changes"] == ["orientation"]
    assert by_default["drawing.png"]["changes"] == []
    assert all(row["tokens"] == row["tokens_engine"] for row in rows if "error" not in row)
    *_, again, thrifty = rows
    assert again["picture"] == thrifty["picture"] == "drawing.png"
    assert again["decision"] == thrifty["decision"] == "holds_images"
    assert "(one backend)" in ran.err


@contextmanager
def staying_up(pictures: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A demo that has printed its table and waits, with the words it said."""
    command = [sys.executable, "-m", "gateway", "demo", "--images", str(pictures)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while not lines or "Metrics:" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        try:
            yield process, " ".join(lines).split()
        finally:
            process.terminate()  # a failed test must not wait for a demo that stays up


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stays_up_for_the_user_s_own_client(tmp_path: Path, number: signal.Signals) -> None:
    with staying_up(draw_pictures(tmp_path)) as (process, words):
        base_url, metrics = (word for word in words if word.endswith(("/v1", "/metrics")))
        with OpenAI(base_url=base_url, api_key="any") as client:
            model = client.models.list().data[0].id
            answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])
        assert "You wrote: Hello" in (answer.choices[0].message.content or "")
        assert "vlmgw_requests_total" in httpx.get(metrics, trust_env=False, timeout=30).text
        process.send_signal(number)
        assert process.stdout is not None
        table = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert "photograph.jpg" in table
    assert "conforming: passed untouched" in table


def test_it_fails_with_its_gateway(tmp_path: Path) -> None:
    (tmp_path / "drawing.png").write_bytes(drawn.png(320, 256))
    with staying_up(tmp_path) as (process, _):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        (gateway,) = [pid for pid in children if b"\0serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(gateway), signal.SIGKILL)
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert "The gateway ended" in process.stderr.read()


def test_a_folder_without_pictures_is_wrong_usage(tmp_path: Path) -> None:
    ran = run("demo", "--once", "--images", str(tmp_path))
    assert ran.code == 2
    assert "no image" in ran.err
    assert run("demo", "--once", "--images", str(tmp_path / "no-such-folder")).code == 2
    assert run("demo", "--once", "--port", "99999").code == 2


def test_nothing_usable_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"nothing")
    ran = start("demo", "--once", "--images", str(tmp_path))
    assert ran.code == 1
    assert "image_undecodable" in ran.out or "image_format_unsupported" in ran.out
    assert "None of the pictures" in ran.err
