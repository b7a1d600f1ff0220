"""Our gateway beside ``sglang-router``, ``vllm-router``, LiteLLM's proxy and a bare relay: one run, same backends.

``python -m benchmarks peers [--json] [--rounds N] [--only PART,...] [--skip PART,...] [--plot FILE.svg]``. Method:

* *Who*: ``line_up``: each from PyPI in the version of ``versions.toml``, in an environment of its own under
  ``.bench/``, started with its defaults. One that cannot be had is named under ``missing`` and has no columns.
* *In front of what*: ``backend``, a bare protocol that answers at once, so that it is no part of what is measured.
* *Where*: asker and backends on the first CPU, all contenders on the last, so that none runs beside its own load.
* *How*: ``speed``: interleaved rounds, medians; CPU per request is the figure to trust on a machine with other work.
  Ratios are of medians of one run.
* ``affinity``, ``memory`` and ``failure`` say what they do and count. Everything is on the loopback interface, bounded
  in number and time: about ten minutes on two quiet cores; ``--skip recovery`` saves the minute that others wait.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from benchmarks.peers import affinity, failure, memory, speed
from benchmarks.peers.bars import chart as chart
from benchmarks.peers.line_up import EVERYBODY, LITELLM, RELAY, SGLANG, VLLM_RR, Variant, site
from benchmarks.peers.report import ratios
from benchmarks.peers.report import table as table
from benchmarks.timing import Options, machine_facts

PARTS = (*(cell.name for cell in speed.CELLS), "affinity", "rss", "failure", "recovery")
_ROUNDS = 15


def run(options: Options) -> dict[str, object]:
    """All parts, or those asked for."""
    parts = [part for part in options.only or PARTS if part not in options.skip]
    report: dict[str, object] = {}
    costs: dict[str, dict[str, dict[str, float]]] = {}
    missing: dict[str, str] = {}
    cells = [cell for cell in speed.CELLS if cell.name in parts]
    if cells:
        with site([Variant(name) for name in EVERYBODY]) as place:
            missing |= place.missing
            for cell in cells:
                _tell(cell.what)
                costs[cell.name], broken = speed.measure(cell, place.contenders, options.rounds or _ROUNDS)
                missing |= {f"{name}, {cell.what}": why for name, why in broken.items()}
    report |= {name: ratios(found) for name, found in costs.items()}
    if "affinity" in parts:
        _tell("affinity")
        report["affinity"], absent = affinity.measure()
        missing |= absent
    if "rss" in parts:
        _tell("memory")
        with site([Variant(name) for name in EVERYBODY if name != VLLM_RR]) as place:
            missing |= place.missing
            report["rss"] = memory.measure(place.contenders)
    if "failure" in parts or "recovery" in parts:
        _tell("failures")
        report |= _failures(missing, recovery="recovery" in parts)
    facts: Mapping[str, object] = {
        "costs": costs,
        "missing": missing,
        "rounds": options.rounds or _ROUNDS,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine_facts(),
    }
    return {**report, **facts}


def _failures(missing: dict[str, str], *, recovery: bool) -> dict[str, object]:
    wanted = [Variant(name) for name in EVERYBODY if name not in {RELAY, VLLM_RR}]
    with site(wanted, backends=2) as place:
        missing |= place.missing
        found = failure.measure(place)
        if not recovery:
            return {"failure": found}
        refusals, recovered = failure.outage(place)
    for name, refusal in refusals.items():
        found[name]["no_backend"] = refusal
    return {"failure": found, "recovery_s": recovered}


def _tell(what: str) -> None:
    print(f"peers: {what} ...", file=sys.stderr, flush=True)


__all__ = ["LITELLM", "PARTS", "RELAY", "SGLANG", "chart", "run", "table"]
