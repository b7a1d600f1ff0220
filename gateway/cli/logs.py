"""``vlm-gateway logs``: the gateway's JSON lines for people, and only those that are asked for.

Decided here: which lines are shown, and how one is told in a row. Not decided here: what stands in a line
(``telemetry``). What is no line of ours is shown as it is, so that a traceback among them is not lost; but nothing is
shown that a terminal would obey, since clients choose some of what stands there.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from gateway.cli.logfile import MOST_LINE_BYTES, followed, opened
from gateway.cli.output import fail, say

_STYLES = {"ok": "green", "client_gone": "yellow", "rejected": "yellow", "shed": "yellow", "backend_refused": "yellow"}
_LEVEL_STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "bold red"}
_LEVELS = tuple(_LEVEL_STYLES)
# Told apart in a row of their own, or of no use to people.
_HEAD = ("time", "level", "event")
# What a log collector writes before our JSON.
_OBJECT = re.compile(rb"\{.*\}")
# Terminals obey control characters, and what turns the direction of writing makes a text look like another one; halves
# of surrogate pairs cannot be written at all. Tabs are layout.
_UNSHOWN = dict.fromkeys(
    (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)),
    "\ufffd",
) | {code: 0x2400 + code for code in range(0x20) if code != 0x09}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines are shown; ``None`` and the empty string ask for nothing. Texts are compared whole, but the
    beginning of a request's id is enough.

    What asks for requests leaves out other lines, and ``level`` requests; both together are shown together.
    """

    tenant: str = ""
    task: str = ""
    model: str = ""
    backend: str = ""
    outcome: str = ""
    code: str = ""
    request: str = ""
    slower_ms: float | None = None
    failed: bool = False
    level: str | None = None

    @property
    def asks_for_exchanges(self) -> bool:
        """Whether anything is asked that only an exchange can answer."""
        fields = (self.tenant, self.task, self.model, self.backend, self.outcome, self.code, self.request)
        return any(fields) or self.slower_ms is not None or self.failed

    def takes(self, line: dict[str, Any]) -> bool:
        if line.get("event") != "exchange":
            return self._takes_level(line.get("level", "info"))
        if self.level is not None and not self.asks_for_exchanges:
            return False
        fields = (
            (self.tenant, "tenant"), (self.task, "task"), (self.model, "model"), (self.backend, "backend"),
            (self.outcome, "outcome"), (self.code, "code"),
        )  # fmt: skip
        if any(wanted and line.get(name) != wanted for wanted, name in fields):
            return False
        if not str(line.get("request_id", "")).startswith(self.request):
            return False
        if self.slower_ms is not None and not _number(line.get("total_ms")) >= self.slower_ms:
            return False
        return not self.failed or line.get("outcome") != "ok"

    def _takes_level(self, level: object) -> bool:
        if self.level is None:
            return not self.asks_for_exchanges and level in _LEVELS
        return level in _LEVELS and _LEVELS.index(str(level)) >= _LEVELS.index(self.level)


def logs(  # noqa: PLR0913, PLR0917  # one parameter per flag
    files: Annotated[list[str] | None, typer.Argument(help="Logs, plain or gzip; standard input by default.")] = None,
    tenant: Annotated[str, typer.Option(help="Only this tenant's requests.")] = "",
    task: Annotated[str, typer.Option(help="Only this task's.")] = "",
    model: Annotated[str, typer.Option(help="Only those for this model.")] = "",
    backend: Annotated[str, typer.Option(help="Only those that this backend answered.")] = "",
    outcome: Annotated[str, typer.Option(help="Only these: ok, rejected, shed, backend_failed, client_gone ...")] = "",
    code: Annotated[str, typer.Option(help="Only those that ended with this error code.")] = "",
    request: Annotated[str, typer.Option(help="Only requests whose id is this, or begins so.")] = "",
    slower_ms: Annotated[float | None, typer.Option(help="Only those that took at least this long.", min=0)] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that did not end well.")] = False,
    level: Annotated[str | None, typer.Option(help="Lines other than requests, from this level on.")] = None,
    stages: Annotated[bool, typer.Option("--stages", help="Tell every stage's time below a request.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the file is written.")] = False,
    raw: Annotated[bool, typer.Option("--json", help="Print the lines that are wanted as they are.")] = False,
) -> None:
    """Show the gateway's log for people: one row a request, with filters."""
    if level is not None and level not in _LEVELS:
        raise fail(f"--level {level}: it must be one of {', '.join(_LEVELS)}.", code=2)
    names = files or ["-"]
    if follow and len(names) > 1:
        raise fail("--follow takes one file.", code=2)
    wanted = Wanted(tenant, task, model, backend, outcome, code, request, slower_ms, failed, level)
    console = Console(highlight=False, soft_wrap=True)
    unread: list[str] = []
    shown = 0
    try:
        for line in _lines(names, unread, follow=follow):
            shown += _show(line, wanted, console, stages=stages, raw=raw)
    except (BrokenPipeError, KeyboardInterrupt):
        # `| head` has seen enough, or somebody at the keyboard has.
        sys.stderr.close()
        return
    if not shown and wanted != Wanted():
        say("No line is what was asked for.")
    for problem in unread:
        say(problem)
    if unread:
        raise typer.Exit(1)


def _lines(names: Iterable[str], unread: list[str], *, follow: bool) -> Iterator[bytes]:
    """All lines of all files; of those that cannot be read to their end the reason is put into ``unread``."""
    for name in names:
        if follow and name != "-":
            yield from followed(name)
            continue
        with opened(name) as stream:
            try:
                while line := stream.readline(MOST_LINE_BYTES):
                    yield line
            except (EOFError, OSError, zlib.error) as error:
                unread.append(f"{name}: cannot be read to its end: {error}")


def _show(line: bytes, wanted: Wanted, console: Console, *, stages: bool, raw: bool) -> bool:
    """Whether it is wanted."""
    fields = _read(line)
    if fields is None:
        if raw or wanted.asks_for_exchanges:
            return False
        console.print(_shown(Text(line.decode(errors="replace").rstrip("\r\n"), "dim")))
        return True
    if not wanted.takes(fields):
        return False
    if raw:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        typer.echo(text if text.isprintable() else json.dumps(fields, separators=(",", ":")))
        return True
    is_exchange = fields.get("event") == "exchange"
    console.print(_shown(exchange_row(fields) if is_exchange else event_row(fields)))
    if stages and is_exchange:
        console.print(_shown(Text(" " * 13 + _stages(fields), "dim")))
    return True


def _shown(row: Text) -> Text:
    """The same without what a terminal would obey, sign for sign, so that its styles stay where they are."""
    row.plain = row.plain.translate(_UNSHOWN)
    return row


def _read(line: bytes) -> dict[str, Any] | None:
    """A line of ours, or nothing."""
    found = _OBJECT.search(line)
    if found is None:
        return None
    try:
        fields = json.loads(found[0])
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and isinstance(fields.get("event"), str) else None


def event_row(line: dict[str, Any]) -> Text:
    """Anything but an exchange: its fields as they are."""
    level = str(line.get("level", "info"))
    row = Text(f"{_clock(line)} ")
    row.append(f"{level:<8}{line['event']}", _LEVEL_STYLES.get(level, ""))
    for name, value in line.items():
        if name not in _HEAD:
            row.append(f"  {name}=", "dim").append(value if isinstance(value, str) else json.dumps(value))
    return row


def exchange_row(line: dict[str, Any]) -> Text:
    """One request: when, how it ended, how long it took, whose, what became of its images, where it went, why."""
    outcome = str(line.get("outcome") or "?")
    row = Text(f"{_clock(line)} ")
    row.append(f"{line.get('status') or '---'} {outcome:<15}", _STYLES.get(outcome, "bold red"))
    row.append(f"{_number(line.get('total_ms')):>8.0f} ms")
    for part in (_ttfb, _who, _images, _tokens, _where, _why):
        text = part(line)
        if text:
            row.append(f"  {text}")
    return row.append(f"  {line.get('request_id', '')}", "dim")


def _clock(line: dict[str, Any]) -> str:
    seconds = _number(line.get("time"))
    try:
        clock = time.localtime(seconds)
    except (OverflowError, OSError):  # a year that no calendar has
        return "--:--:--.---"
    return time.strftime("%H:%M:%S", clock) + f".{int(seconds * 1000) % 1000:03d}"


def _ttfb(line: dict[str, Any]) -> str:
    return f"first {_number(line['ttfb_ms']):.0f}" if "ttfb_ms" in line else ""


def _who(line: dict[str, Any]) -> str:
    return "/".join(str(line[name]) for name in ("tenant", "task") if line.get(name))


def _images(line: dict[str, Any]) -> str:
    images = line.get("images")
    if not isinstance(images, dict):
        return ""
    counts = {name: int(_number(images.get(name))) for name in ("passed", "shrunk", "recoded", "omitted")}
    done = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name != "passed")
    total = sum(counts.values())
    return f"{total} image{'s' if total != 1 else ''}" + (f" ({done})" if done else "")


def _tokens(line: dict[str, Any]) -> str:
    estimate, images, usage = (_object(line.get(name)) for name in ("estimate", "images", "usage"))
    if not estimate:
        return ""
    told = f"{int(_number(usage.get('prompt'))):,}" if usage else f"~{int(_number(estimate.get('prompt'))):,}"
    before, after = _number(images.get("tokens_original")), _number(estimate.get("image"))
    saved = f", image tokens {before:,.0f} -> {after:,.0f}" if before > after else ""
    cached = f", {int(_number(usage.get('cached'))):,} cached" if usage.get("cached") else ""
    return f"{told} tokens{saved}{cached}"


def _where(line: dict[str, Any]) -> str:
    if not line.get("backend"):
        return ""
    attempts = f", attempt {line['attempts']}" if line.get("attempts") else ""
    return f"{line['backend']} ({line.get('decision', '?')}{attempts})"


def _why(line: dict[str, Any]) -> str:
    code = line.get("code")
    rule = f" {line['rule']}" if line.get("rule") else ""
    return f"{code}{rule}" if code else ""


def _stages(line: dict[str, Any]) -> str:
    """The longest first."""
    times = sorted(((_number(ms), stage) for stage, ms in _object(line.get("stages_ms")).items()), reverse=True)
    return "  ".join(f"{stage} {ms:.1f}" for ms, stage in times)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0
