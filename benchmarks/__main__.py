"""``python -m benchmarks NAME [--json] [--images DIR] [--rounds N] [--plot FILE]``: one measurement.

A benchmark is a module with ``run(options) -> dict`` and ``table(report) -> list[str]``; a new one is one line here.
With ``chart(report) -> str`` it can be drawn as well.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from benchmarks.timing import Options

_BENCHMARKS = {
    "elision": ("benchmarks.elision", "what a growing conversation keeps of its prefix, by how images are left out"),
    "idle": ("benchmarks.idle", "what a connection costs in memory while nothing comes over it, against a bare relay"),
    "image": ("benchmarks.image", "a worker's whole job on a picture against the best native steps for its pixels"),
    "lag": ("benchmarks.lag", "the loop while the image pool is asked for four times what it can do"),
    "legibility": ("benchmarks.legibility", "letters read wrongly under the cap of every shipped task"),
    "memory": ("benchmarks.memory", "what a picture adds to a worker's memory, against what was predicted for it"),
    "passthrough": ("benchmarks.passthrough", "text requests against a bare relay and against LiteLLM"),
    "peers": (
        "benchmarks.peers",
        "sglang-router, vllm-router, LiteLLM and a bare relay: CPU, affinity, memory, failures",
    ),
    "policy": ("benchmarks.policy", "loading a thousand tenants, resolving and checking a request of ten images"),
    "pool": ("benchmarks.pool", "handing bytes to a worker and back, and one worker against two"),
    "quota": ("benchmarks.quota", "policy, claim and budgets of a request, in memory"),
    "release": ("benchmarks.release", "requests held back to reach an engine together, in a model of its steps"),
    "replay": ("benchmarks.replay", "an access log under other policies: lines a second, and what comes out"),
    "routing": ("benchmarks.routing", "hits, balance and first tokens in simulated fleets, and what a decision costs"),
    "scale": ("benchmarks.scale", "a thousand backends, fifty gateways, a million images a minute: part by part"),
    "scrape": ("benchmarks.scrape", "the loop under load while metrics are scraped every second, against unscraped"),
    "stream": ("benchmarks.stream", "200 events through the gateway and a bare relay: time of each, CPU of all"),
    "tokens": ("benchmarks.tokens", "pricing an image in every family, and a request of a hundred"),
    "turns": ("benchmarks.turns", "a long conversation whose images are known, against a bare relay"),
    "value": ("benchmarks.value", "a conversation about photographs with a real vLLM, direct and through the gateway"),
}


def main() -> None:
    """Run the named benchmark. Told to end, it ends what it started as well."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    module = import_module(_BENCHMARKS[arguments.name][0])
    run = cast("Callable[[Options], dict[str, object]]", module.run)
    report = run(Options(arguments.images, arguments.rounds, arguments.only, arguments.skip))
    if arguments.plot is not None:
        arguments.plot.write_text(cast("Callable[[dict[str, object]], str]", module.chart)(report), encoding="utf-8")
    if arguments.write is not None:
        cast("Callable[[dict[str, object], Path], None]", module.write)(report, arguments.write)
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    for line in cast("Callable[[dict[str, object]], list[str]]", module.table)(report):
        print(line)


def _parse() -> argparse.Namespace:
    names = "\n".join(f"  {name:12} {what}" for name, (_, what) in _BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog=names, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(_BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--images", type=Path, metavar="DIR", help="measure your own pictures")
    parser.add_argument("--rounds", type=int, help="how often each contender runs")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw the figure as well (elision, peers, replay)"
    )
    for name, what in (("only", "run no other parts"), ("skip", "leave these parts out")):
        parser.add_argument(f"--{name}", type=_listed, default=(), metavar="PART,...", help=f"{what} (peers)")
    parser.add_argument("--write", type=Path, metavar="PAGE.md", help="put the tables into this page (scale)")
    arguments = parser.parse_args()
    if arguments.write is not None and not hasattr(import_module(_BENCHMARKS[arguments.name][0]), "write"):
        parser.error(f"{arguments.name} has no page")
    unknown = {*arguments.only, *arguments.skip} - {
        *getattr(import_module(_BENCHMARKS[arguments.name][0]), "PARTS", ())
    }
    if unknown:
        parser.error(f"{arguments.name} has no part {', '.join(sorted(unknown))}")
    if arguments.plot is not None and not hasattr(import_module(_BENCHMARKS[arguments.name][0]), "chart"):
        parser.error(f"{arguments.name} has no figure")
    return arguments


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


if __name__ == "__main__":
    main()
