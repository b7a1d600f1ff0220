"""What gateways do, drawn for a terminal of any width.

Decided here: words, units, order, and what is left out where there is no room. Not decided here: the numbers
(`reading`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.top.reading import BackendRow, Quantiles, Reading, TenantRow

_OUTCOMES = {"ok": "green", "rejected": "yellow", "shed": "yellow", "client_gone": "yellow"}
_BYTES = ("B", "KB", "MB", "GB")
_WIDE = 96
_NONE = "–"
_NO_BREAK = "\N{NO-BREAK SPACE}"
# Rows that are no table's: the summary, titles, heads.
_OTHER_ROWS = 21
_FEWEST_ROWS = 4


def screen(reading: Reading, problems: Sequence[str], *, width: int, height: int | None = None) -> RenderableType:
    """One frame. ``problems``: gateways that do not answer; ``height`` ``None``: as long as it is."""
    backend_rows, tenant_rows = _rows(reading, height)
    parts: list[RenderableType] = [_head(reading), *(Text(problem, "bold red") for problem in problems)]
    if reading.gateways:
        parts += [_summary(reading), _backends(reading, width, backend_rows), _tenants(reading, width, tenant_rows)]
    return Group(*parts)


def _rows(r: Reading, height: int | None) -> tuple[int | None, int | None]:
    """How many backends and tenants are shown: each at least half of what there is room for."""
    if height is None:
        return None, None
    room = max(_FEWEST_ROWS, height - _OTHER_ROWS)
    tenants = min(len(r.tenants), max(room // 2, room - len(r.backends)))
    return room - tenants, tenants


def _head(r: Reading) -> Text:
    text = Text(f"vlm-gateway {', '.join(r.versions)}".rstrip(), "bold")
    text.append(f"  {r.gateways} gateway{'' if r.gateways == 1 else 's'}", "not bold")
    if r.reloaded_at is not None:
        text.append(f"  configuration of {_age(time.time() - r.reloaded_at)} ago", "not bold")
    for count, what in ((r.draining, "draining"), (r.reload_failed, "with a failed reload"), (r.store_away, "cut off")):
        if count:
            text.append(f"  {count} {what}", "bold yellow")
    return text


def _summary(r: Reading) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in (
        ("requests", _requests(r)),
        ("errors", _listed(r.errors, "red")),
        ("latency", _latency(r)),
        ("tokens", _tokens(r)),
        ("images", _images(r)),
        ("pool", _pool(r)),
    ):
        if text:
            table.add_row(name, text)
    return table


def _requests(r: Reading) -> Text:
    text = Text(f"{_rate(sum(r.requests.values()))}/s")
    for outcome, rate in sorted(r.requests.items()):
        if rate:
            text.append(f"  {outcome} ").append(_rate(rate), _OUTCOMES.get(outcome, "bold red"))
    text.append(f"  in flight {r.inflight:,.0f}")
    if r.waiting:
        text.append(f" ({r.waiting:,.0f} waiting for budget)", "yellow")
    return text.append(f", oldest {r.oldest_s:.1f} s" if r.inflight else "")


def _listed(rates: Mapping[str, float], style: str) -> Text:
    most = sorted(rates.items(), key=lambda item: -item[1])[:6]
    return Text("  ".join(f"{name} {_rate(rate)}/s" for name, rate in most), style)


def _latency(r: Reading) -> Text:
    told = (("first byte", r.first_byte), ("ours", r.overhead), ("loop lag", r.loop_lag))
    return Text("   ".join(_unbroken(f"{name} {_quantiles(quantiles)}") for name, quantiles in told))


def _unbroken(text: str) -> str:
    return text.replace(" ", _NO_BREAK)


def _quantiles(q: Quantiles) -> str:
    if q.p50_s is None:
        return _NONE
    told = (("p50", q.p50_s), ("p90", q.p90_s), ("p99", q.p99_s))
    return " ".join(f"{name} {_seconds(value or 0.0)}" for name, value in told)


def _tokens(r: Reading) -> Text:
    text = Text("  ".join(f"{kind} {r.tokens.get(kind, 0.0):,.0f}/s" for kind in ("prompt", "completion", "cached")))
    asked, sent = r.image_tokens.get("asked", 0.0), r.image_tokens.get("sent", 0.0)
    if asked > 0:
        text.append(f"  of images {sent:,.0f}/s instead of {asked:,.0f} ")
        text.append(f"({(asked - sent) / asked:.0%} saved)", "green" if sent < asked else "")
    return text


def _images(r: Reading) -> Text:
    total = sum(r.images.values())
    if not total:
        return Text("")
    text = Text(f"{_rate(total)}/s  ")
    text.append("  ".join(f"{action} {_rate(rate)}" for action, rate in sorted(r.images.items()) if rate))
    text.append(f"  {_bytes(r.image_bytes.get('in', 0.0))}/s became {_bytes(r.image_bytes.get('out', 0.0))}/s")
    return text.append("" if r.cache_hit_ratio is None else f"  cache hits {r.cache_hit_ratio:.0%}")


def _pool(r: Reading) -> Text:
    pool = r.pool
    text = Text(f"{pool.busy:,.0f} of {pool.workers:,.0f} workers busy ")
    text.append(_bar(pool.busy / pool.workers if pool.workers else 0.0), "cyan")
    text.append(f" {pool.queued:,.0f} images queued", "yellow" if pool.queued else "")
    text.append(f" ({_seconds(pool.line_s)} of work)" if pool.queued else "")
    return text.append(f"  {_bytes(pool.memory_bytes)}")


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(columns[0], no_wrap=True, overflow="ellipsis", min_width=8, ratio=None)
    for column in columns[1:]:
        table.add_column(column, no_wrap=True, justify="right")
    return table


def _backends(r: Reading, width: int, rows: int | None) -> RenderableType:
    open_breakers = {state: count for state, count in r.breakers.items() if count and state != "closed"}
    told = "".join(f", {count:.0f} {state.replace('_', ' ')}" for state, count in sorted(open_breakers.items()))
    columns = ["backend", "up", "req/s", "fail/s", "in flight", "queued", "KV"]
    narrow = width < _WIDE // 2
    shown = [0, 1, 2, 4] if narrow else list(range(len(columns)))
    table = _table(f"Backends{told and ' (breakers' + told + ')'}", [columns[place] for place in shown])
    for row in r.backends[:rows]:
        cells = _backend_cells(row)
        table.add_row(*(cells[place] for place in shown))
    return _with_rest(table, len(r.backends), rows)


def _backend_cells(row: BackendRow) -> list[Text]:
    all_up = row.up == row.known
    up = ("up" if all_up else "down" if not row.up else f"{row.up}/{row.known}", "green" if all_up else "bold red")
    return [
        Text(row.name),
        Text(*up),
        Text(_rate(row.per_s)),
        Text(_rate(row.failed_per_s), "bold red" if row.failed_per_s else ""),
        Text(f"{row.inflight:,.0f}"),
        Text(_NONE if row.queued is None else f"{row.queued:,.0f}"),
        Text(_NONE if row.kv_ratio is None else f"{row.kv_ratio:.0%}"),
    ]


def _tenants(r: Reading, width: int, rows: int | None) -> RenderableType:
    columns = ["tenant", "req/s", "refused/s", "tokens/s", "KV tokens held"]
    shown = [0, 1, 4] if width < _WIDE // 2 else list(range(len(columns)))
    table = _table("Tenants", [columns[place] for place in shown])
    for row in r.tenants[:rows]:
        cells = _tenant_cells(row, with_bar=width >= _WIDE)
        table.add_row(*(cells[place] for place in shown))
    return _with_rest(table, len(r.tenants), rows)


def _tenant_cells(row: TenantRow, *, with_bar: bool) -> list[Text]:
    held = Text(f"{row.reserved_tokens:,.0f}")
    if row.limit_tokens:
        share = row.reserved_tokens / row.limit_tokens
        held.append(f" of {row.limit_tokens:,.0f}")
        if with_bar:
            held.append(f" {_bar(share)}", "red" if share > 0.9 else "cyan")
    return [
        Text(row.name),
        Text(_rate(row.per_s)),
        Text(_rate(row.refused_per_s), "yellow" if row.refused_per_s else ""),
        Text(f"{row.tokens_per_s:,.0f}"),
        held,
    ]


def _with_rest(table: Table, count: int, rows: int | None) -> RenderableType:
    if rows is None or count <= rows:
        return table
    return Group(table, Text(f"and {count - rows} more", "dim"))


def _bar(share: float, cells: int = 10) -> str:
    full = round(min(max(share, 0.0), 1.0) * cells)
    return "█" * full + "░" * (cells - full)


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.1f}"


def _seconds(seconds: float) -> str:
    return (
        f"{seconds:.2f} s"
        if seconds >= 1
        else f"{seconds * 1000:.0f} ms"
        if seconds >= 0.01
        else f"{seconds * 1000:.1f} ms"
    )


def _bytes(count: float) -> str:
    for unit in _BYTES[:-1]:
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} {_BYTES[-1]}"


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
