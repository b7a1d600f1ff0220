"""Replaying an access log under other policies: how many lines a second, and what comes out for made-up traffic.

The traffic is that of the tenants in ``policies/``: photographs for a chat product, single pictures to classify, pages
to read, sessions of screenshots. The log tells what became of it without any policy; replayed is what ``policies/``
would make of it. The same lines come out every time. CPU time, reading and parsing included.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from benchmarks.timing import Options, machine_facts
from gateway.cli.simulate_report import Read, chart_of, report
from gateway.config.policies import load_policies
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.policyset import builtin_policies
from gateway.replay.line import Asked, Estimate, Exchange, Images, read_line
from gateway.replay.run import Replayer
from gateway.replay.tally import Prices, Tally, place_of

LINES = 4_000
_MODEL = "Qwen/Qwen3-VL-8B-Instruct"
_POLICIES = Path(__file__).parents[1] / "policies"
_PRICES = Prices(per_million_tokens=0.2)
_BUDGET_LINES_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of request: who sends it, what its images are and how many there may be."""

    tenant: str
    task: str
    sources: tuple[str, ...]
    most: int
    output_limit: int


_KINDS = (
    _Kind("chat-product", "chat", ("jpeg 4032x3024 3100000", "jpeg 1920x1080 640000"), 3, 512),
    _Kind("classifier", "classify", ("jpeg 1280x960 310000",), 2, 16),
    _Kind("documents", "document", ("png 2480x3508 900000", "jpeg 1654x2339 420000"), 12, 1_024),
    _Kind("migrated-app", "agent", ("png 1280x800 260000",), 30, 256),
)


def lines(count: int) -> Iterator[bytes]:
    """So many access lines as a gateway without policies would have written them."""
    chance, untold = random.Random(7), Replayer(builtin_policies(), ModelBook(shipped_catalog()))
    for number in range(count):
        kind = chance.choice(_KINDS)
        sources = [chance.choice(kind.sources) for _ in range(chance.randint(1, kind.most))]
        asked = Asked(1, chance.randint(80, 2_000), len(sources), output_limit=kind.output_limit, sources=sources)
        line = Exchange(
            event="exchange", request_id=f"r{number}", path="/v1/chat/completions", outcome="ok", tenant="default",
            task=kind.task, task_reason="header x-vlmgw-task", model=_MODEL, engine="vllm", asked=asked,
        )  # fmt: skip
        found = untold.replay(msgspec.structs.replace(line, task="chat"))
        estimate = Estimate(asked.text_bytes // 4, found.image_tokens, found.prompt_tokens, kind.output_limit)
        whole = msgspec.structs.replace(
            line, tenant=kind.tenant, estimate=estimate, images=Images(shrunk=found.shrunk, patches=found.patches)
        )
        yield msgspec.json.encode(whole) + b"\n"


def run(options: Options) -> dict[str, object]:
    """Replay so many lines; ``--rounds`` says how many."""
    count = options.rounds or LINES
    log = io.BytesIO(b"".join(lines(count)))
    book, read = ModelBook(shipped_catalog()), Read()
    replayer = Replayer(load_policies(_POLICIES), book)
    tallies: dict[tuple[str, str], Tally] = {}
    began_s = time.process_time()
    for raw in log:
        line = read_line(raw)
        assert line is not None, "every line is an exchange"
        read.lines, read.exchanges = read.lines + 1, read.exchanges + 1
        tally = tallies.setdefault(place_of(line, tallies), Tally(line.tenant or "", line.task or ""))
        tally.add(replayer.logged(line), replayer.replay(line))
    lines_per_s = count / (time.process_time() - began_s)
    told = report([tallies[key] for key in sorted(tallies)], _PRICES, read)
    return {
        "machine": machine_facts(),
        "lines": count,
        "lines_per_s": round(lines_per_s),
        "within_budget": lines_per_s >= _BUDGET_LINES_PER_S,
        **told,
    }


def table(report: dict[str, object]) -> list[str]:
    """The report for people."""
    told = []
    for row in cast("list[dict[str, dict[str, int]]]", report["rows"]):
        was, becomes = row["before"], row["after"]
        told.append(
            f"{row['tenant']!s:14} {row['task']!s:10} {row['requests']:>6} requests  image tokens "
            f"{was['image_tokens']:>11,} -> {becomes['image_tokens']:>11,}  refused {becomes['refused']}"
        )
    return [*told, f"{report['lines_per_s']:,} lines a second (at least {_BUDGET_LINES_PER_S:,})"]


def chart(report: dict[str, object]) -> str:
    """The figure that ``vlm-gateway simulate --plot`` draws."""
    return chart_of(cast("list[dict[str, object]]", report["rows"]), is_priced=True)
