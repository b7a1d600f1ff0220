"""The report in ratios, as a table for people, and as the tables of ``docs/comparison.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from benchmarks.peers.line_up import EVERYBODY, GATEWAY, LITELLM, RELAY, SGLANG, VLLM, VLLM_RR
from benchmarks.peers.speed import CELLS

_RATIO_NAMES = {
    LITELLM: "cpu_ratio_to_litellm",
    SGLANG: "cpu_ratio_to_sglang_router",
    VLLM: "cpu_ratio_to_vllm_router",
    VLLM_RR: "cpu_ratio_to_vllm_router_rr",
    RELAY: "cpu_ratio_to_relay",
}
_MEMORY = {
    "idle_rss_mib": "idle, RSS",
    "idle_pss_mib": "idle, PSS",
    "peak_rss_mib": "peak, RSS",
    "after_rss_mib": "after, RSS",
    "after_pss_mib": "after, PSS",
    "idle_connection_kib": "KiB per idle connection",
}

Costs = Mapping[str, Mapping[str, float]]
Rows = list[list[str]]


def ratios(costs: Costs) -> dict[str, float | None]:
    """The gateway's CPU over everybody else's; ``None`` for who was not there."""
    ours_ms = costs[GATEWAY]["cpu_ms"]
    found: dict[str, float | None] = {"cpu_ms": ours_ms}
    for name, key in _RATIO_NAMES.items():
        found[key] = round(ours_ms / costs[name]["cpu_ms"], 3) if name in costs else None
    return found


def speed_rows(report: Mapping[str, Any]) -> Rows:
    """CPU-ms per request (per stream), and in brackets p50 in ms."""
    names = _present(report)
    rows = [["CPU-ms per request (p50, ms)", *names]]
    for cell in CELLS:
        costs = cast("Costs", report["costs"].get(cell.name, {}))
        if costs:
            rows.append([cell.what, *(_cost(costs.get(name)) for name in names)])
    return rows


def ratio_rows(report: Mapping[str, Any]) -> Rows:
    """The gateway's CPU over each other's."""
    names = [name for name in _present(report) if name != GATEWAY]
    rows = [["gateway's CPU divided by that of", *names]]
    for cell in CELLS:
        if cell.name in report:
            found = report[cell.name]
            rows.append([cell.what, *(_number(found[_RATIO_NAMES[name]]) for name in names)])
    return rows


def affinity_rows(report: Mapping[str, Any]) -> Rows:
    """Homes, cold encodes and split, for new words and the same."""
    rows = [["router and policy", *(f"{words} words: {what}" for words in ("new", "same") for what in _MET)]]
    for name, cell in report.get("affinity", {}).items():
        met = [cell[words] for words in ("new", "same")]
        rows.append(
            [name, *(text for each in met for text in (str(each["homes"]), str(each["cold_encodes"]), _split(each)))]
        )
    return rows


_MET = ("one home", "cold encodes", "split")


def memory_rows(report: Mapping[str, Any]) -> Rows:
    """MiB by contender."""
    found = report.get("rss", {})
    rows = [["MiB", *found]]
    rows += [[told, *(f"{found[name][key]:.1f}" for name in found)] for key, told in _MEMORY.items()]
    return rows if found else []


def failure_rows(report: Mapping[str, Any]) -> Rows:
    """What clients and backends see, by contender."""
    found = report.get("failure", {})
    if not found:
        return []
    recovered = report.get("recovery_s", {})
    rows = [["case", *found]]
    rows.append(["the engine's own fields that are lost", *(_listed(each["fields_lost"]) for each in found.values())])
    rows.append(["a backend dies in a stream", *(_cut(each["dies_in_stream"]) for each in found.values())])
    rows.append(["a body of 2 GiB is announced", *(_status(each["too_large"]) for each in found.values())])
    if recovered:
        rows.append(["no backend listens", *(_refusal(each["no_backend"]) for each in found.values())])
        rows.append(["first 200 after all are back", *(_seconds(recovered[name]) for name in found)])
    return rows


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    lines: list[str] = []
    for rows in (speed_rows, ratio_rows, affinity_rows, memory_rows, failure_rows):
        lines += [*_aligned(rows(report)), ""]
    missing = cast("Mapping[str, str]", report["missing"])
    return [*lines, *(f"left out: {name}: {why}" for name, why in missing.items())]


def markdown(rows: Rows) -> list[str]:
    """Rows as a Markdown table, the first one being its head."""
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return [head, "| --- " * len(rows[0]) + "|", *rest]


def _present(report: Mapping[str, Any]) -> list[str]:
    seen = {name for costs in report["costs"].values() for name in costs}
    return [name for name in EVERYBODY if name in seen]


def _aligned(rows: Rows) -> Iterator[str]:
    if len(rows) < 2:
        return
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cost(cost: Mapping[str, float] | None) -> str:
    return "–" if cost is None else f"{_number(cost['cpu_ms'])} ({_number(cost['p50_ms'])})"


def _number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    places = next(places for least, places in ((100, 0), (10, 1), (0.1, 2), (0, 3)) if value >= least)
    return f"{value:.{places}f}"


def _split(met: Mapping[str, Any]) -> str:
    return "/".join(str(count) for count in met["split"])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _cut(seen: Mapping[str, Any]) -> str:
    how = "an error event" if seen["error_event"] else "no word"
    return f"{seen['events']} events, {how}, {'a clean end' if seen['ended_cleanly'] else 'connection cut'}"


def _status(seen: Mapping[str, Any]) -> str:
    return f"{seen['status']} {seen['type']}" if seen["status"] else str(seen["type"])


def _refusal(seen: Mapping[str, Any]) -> str:
    told = [_status(seen), f"after {seen['after_s']} s"]
    told += ["with Retry-After"] if seen["retry_after"] else []
    told += ["names the backend's address"] if seen["names_backend"] else []
    return ", ".join(told)


def _seconds(value: float | None) -> str:
    return "not within 90 s" if value is None else f"{value:.1f} s"
