"""``vlm-gateway demo``: the gateway in front of two simulated engines, with real photographs through a real client.

Decided here: what is started, which pictures are sent and what is printed. Everything runs as its own process, as in
service: two ``engine-sim``, one ``serve``. The engines are given a pixel cap of 1280 x 32 x 32, as most operators do;
without one a 12-megapixel photograph lies under Qwen's shipped cap and would rightly be passed untouched.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.progress import Progress

from gateway.cli.output import fail, say, show_json, show_table
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.types import Size

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
CAP_PIXELS = 1280 * 32 * 32
_START_DEADLINE_S = 60.0
_IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


# The default task stays engine-equivalent; a cheap classifier gets a quarter of a megapixel.
_DEFAULT_TASK = "chat"
_POLICY = f"""\
default_task: {_DEFAULT_TASK}
tasks:
  {_DEFAULT_TASK}: {{}}
  classify: {{max_pixels: 262144, output: jpeg}}
"""


_Row = dict[str, Any]  # as it is printed by --json


@dataclass(frozen=True, slots=True)
class _Shot:
    name: str
    kind: str
    path: Path


@contextmanager
def _process(arguments: Sequence[str], *, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "VLMGW_SERVER_SETTLE_S": "0", "VLMGW_SERVER_DRAIN_TIMEOUT_S": "2"}
    command = [sys.executable, "-m", "gateway", *arguments]
    process = subprocess.Popen(command, stdout=stdout, env=environment)  # noqa: S603  # our own program
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdout is not None, "started with a pipe"
    line = process.stdout.readline()
    if not line:
        raise fail(f"A part of the demo ended at once (exit code {process.wait()}).")
    found: dict[str, object] = json.loads(line)
    return found


def _pictures(images: Path | None) -> list[_Shot]:
    if images is not None:
        found = sorted(path for path in images.iterdir() if path.suffix.lower() in _IMAGE_SUFFIXES)
        if not found:
            raise fail(f"There is no image in {images}.", code=2)
        return [_Shot(path.name, "yours", path) for path in found]
    say("Making the pictures (once): real photographs in phone and scanner sizes, screenshots, graphics ...")
    made = subprocess.run([sys.executable, "-m", "benchmarks.pictures"], check=False, stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise fail(
            "The demo's pictures come with the repository; here, name a folder of your own with --images.", code=2
        )
    rows = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
    return [_Shot(row["name"], row["kind"], Path(row["path"])) for row in rows]


def _wait_ready(url: str, gateway: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline:
        if gateway.poll() is not None:
            raise fail(f"The gateway ended at once (exit code {gateway.returncode}).")
        try:
            if httpx.get(f"{url}/health", timeout=1, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise fail(f"The gateway was not ready within {_START_DEADLINE_S:g} s.")


class _AccessLines:
    """The gateway's access lines by request id, read from its standard output as they come."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: dict[str, dict[str, Any]] = {}
        self._came = threading.Condition()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[bytes]) -> None:
        for raw in stream:
            line = json.loads(raw)
            if line.get("event") == "exchange":
                with self._came:
                    self._lines[line["request_id"]] = line
                    self._came.notify_all()

    def of(self, request_id: str) -> dict[str, Any]:
        with self._came:
            self._came.wait_for(lambda: request_id in self._lines, timeout=10)
            return self._lines.get(request_id, {})


def _row(client: httpx.Client, lines: _AccessLines, shot: _Shot, task: str | None) -> _Row:
    """Send one picture and tell what was done to it."""
    data = shot.path.read_bytes()
    media_type = mimetypes.guess_type(shot.path.name)[0] or "application/octet-stream"
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is in the picture?"}]
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 24}
    answer = client.post("/v1/chat/completions", json=body, headers={} if task is None else {"x-vlmgw-task": task})
    row: _Row = {"picture": shot.name, "kind": shot.kind, "task": task or _DEFAULT_TASK, "bytes": len(data)}
    if answer.is_error:
        return row | {"error": answer.json()["error"]["code"]}
    line = lines.of(answer.headers["x-request-id"])
    original, *delivered = answer.headers["x-vlmgw-geometry"].split(" ")
    return row | {
        "size": original,
        "sent_size": delivered[0] if delivered else original,
        "sent_bytes": line["images"]["bytes_out"],
        "tokens_uncapped": _uncapped_tokens(original),
        "tokens": int(answer.headers["x-vlmgw-image-tokens"]),
        "tokens_engine": answer.json()["usage"]["prompt_tokens_details"]["multimodal_tokens"]["image"],
        "backend": line["backend"],
        "decision": line["decision"],
        "changes": list(line["images"]["changes"]),
        "by_id": bool(line.get("image_ids", {}).get("alone")),
    }


def _uncapped_tokens(size: str) -> int:
    served = ModelBook(shipped_catalog()).serve(MODEL, ())
    width, _, height = size.partition("x")
    return served.family.image_tokens(Size(int(width), int(height)), served.checkpoint).tokens


_COLUMNS = ("picture", "kind", "task", "size", "sent", "bytes", "sent bytes", "uncapped", "tokens", "backend", "why")


def _cells(row: _Row) -> list[str]:
    """One row of the table, in the order of ``_COLUMNS``."""
    start = [str(row["picture"]), str(row["kind"]), str(row["task"])]
    if "error" in row:
        return [*start, "", "", f"{row['bytes']:,}", "", "", "", "", str(row["error"])]
    agreed = row["tokens"] == row["tokens_engine"]
    return [
        *start,
        str(row["size"]),
        str(row["sent_size"]),
        f"{row['bytes']:,}",
        f"{row['sent_bytes']:,}",
        f"{row['tokens_uncapped']:,}",
        f"{row['tokens']:,}" if agreed else f"{row['tokens']:,} (engine: {row['tokens_engine']:,})",
        f"{row['backend']} ({row['decision']})",
        "the engine has it: its id" if row["by_id"] else ", ".join(row["changes"]) or "conforming: passed untouched",
    ]


def demo(
    images: Annotated[
        Path | None, typer.Option(help="Your own pictures instead.", exists=True, file_okay=False)
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the table instead of staying up.")] = False,
    port: Annotated[int, typer.Option(help="Data port; 0 takes a free one.", min=0, max=65535)] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Start the gateway with two simulated engines, send real photographs, print what was done to each."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have started us with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    shots = _pictures(images)
    with ExitStack() as stack:
        engine = ("engine-sim", "--port", "0", "--served-model-name", MODEL, "--max-pixels", str(CAP_PIXELS))
        engines = [stack.enter_context(_process(engine, stdout=subprocess.PIPE)) for _ in range(2)]
        backends = [str(_first_line(process)["url"]) for process in engines]
        say(f"Two simulated vLLM engines (pixel cap {CAP_PIXELS:,}): {', '.join(backends)}")
        chosen = ["--backend", backends[0], "--backend", backends[1], "--max-pixels", str(CAP_PIXELS)]
        policies = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vlm-gateway-demo-")))
        (policies / "default.yaml").write_text(_POLICY, encoding="utf-8")
        arguments = ("serve", *chosen, "--port", str(port), "--admin-port", "0", "--policies", str(policies))
        gateway = stack.enter_context(_process(arguments, stdout=subprocess.PIPE))
        started = _first_line(gateway)
        url = f"http://127.0.0.1:{started['data_port']}"
        admin = f"http://127.0.0.1:{started['admin_port']}"
        _wait_ready(url, gateway)
        assert gateway.stdout is not None, "started with a pipe"
        lines = _AccessLines(gateway.stdout)
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            rows = _send_all(client, lines, shots)
        if json_output:
            show_json(rows)
        else:
            title = f"What became of each picture ({MODEL}, one request each)"
            show_table(title, _COLUMNS, [_cells(row) for row in rows])
        _show_affinity(rows)
        if once:
            return
        say(f"\nStill up. Point an OpenAI client at {url}/v1 (any API key), model {MODEL}.")
        say(f"Metrics: {admin}/metrics   Ready: {admin}/readyz?verbose   Ctrl-C ends.")
        try:
            if (code := gateway.wait()) != 0:
                raise fail(f"The gateway ended (exit code {code}).")
        except KeyboardInterrupt:
            say("Leaving.")


def _send_all(client: httpx.Client, lines: _AccessLines, shots: Sequence[_Shot]) -> list[_Row]:
    """Every picture, then the first that was served again: by the same and by a thriftier task."""
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("pictures", total=len(shots) + 2)
        rows = []
        for shot in shots:
            rows.append(_row(client, lines, shot, None))
            progress.advance(bar)
        again = next((shot for shot, row in zip(shots, rows, strict=True) if "backend" in row), None)
        if again is not None:
            for task in (None, "classify"):
                rows.append(_row(client, lines, again, task))
                progress.advance(bar)
    return rows


def _show_affinity(rows: Sequence[_Row]) -> None:
    served = [row for row in rows if "backend" in row]
    if not served:
        raise fail("None of the pictures could be used.")
    twice = [row for row in served if row["picture"] == served[0]["picture"]][:2]
    places = [row["backend"] for row in twice]
    told = " (one backend)" if len(set(places)) == 1 else ""
    if twice[-1]["by_id"]:
        told += ", the second time as its id alone"
    say(f"The same picture twice: {' and '.join(places)}{told}")
