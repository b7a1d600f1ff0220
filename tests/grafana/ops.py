"""``python -m tests.grafana.ops [--pictures]``, called by ``.ci/ops``: monitoring as it is operated, by real programs.

Decided here: what is asked of Prometheus after the script, and when the answer is wrong. Prints its counts; ends with 1
and every complaint otherwise. Not decided here: what is played (``script``).
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyvips

from grafana.builder import Kind, Panel
from grafana.dashboards import ANNOTATIONS, DASHBOARDS
from grafana.preview import Drawn, preview
from tests.e2e.processes import Engine, Gateway, until
from tests.grafana.expressions import with_values
from tests.grafana.known import ROOT, RULES
from tests.grafana.prometheus_program import Prometheus, Series, promtool
from tests.grafana.script import CODES, EVERYDAY, FETCHES, IMAGES, OUTCOMES, QUICK, TIGHT, TRACE, Stage

PICTURES = ROOT / "docs" / "img"
FLOW_S = 75.0
# A rate of one of our series.
_RATE = re.compile(r"rate\((vlmgw_\w+\{[^}]*\})\[\w+\]\)")
DRILL_HOLD_S = 2
# With both engines killed, this alert is raised and, while it is watched for so long, no other.
DRILL_ALERT, DRILL_WATCH_S = "NoHealthyBackend", 4.0


def say(text: str) -> None:
    """A line of the report."""
    sys.stdout.write(f"ops: {text}\n")
    sys.stdout.flush()


def static() -> None:
    """promtool on the files."""
    promtool("check", "rules", *(str(path) for path in sorted(RULES.iterdir())))
    promtool("test", "rules", str(ROOT / "tests/grafana/alerts_test.yaml"))
    promtool("check", "config", str(ROOT / "grafana/prometheus.yaml"))


def panel_complaints(panel: Panel, prometheus: Prometheus, at_s: float, window: str) -> Iterator[str]:
    """What is wrong with the answers to a panel's queries over the whole script."""
    found = 0
    for query in panel.queries:
        expr = with_values(query.expr, __rate_interval=window)
        series = prometheus.query(expr, at_s)
        found += len(series)
        if not series and panel.quiet is None:
            yield f"nothing: {expr}"
        for each in series:
            value = float(each["value"][1])
            if not math.isfinite(value):
                yield f"{value}: {each['metric']} of {expr}"
            if panel.share and not -1e-9 <= value <= 1 + 1e-9:
                yield f"{value} is no share: {expr}"
            named = set(re.findall(r"\{\{(\w+)\}\}", query.legend)) if panel.kind is not Kind.TABLE else set()
            if not all(each["metric"].get(label) for label in named):
                yield f"{each['metric']} lacks labels of {query.legend!r}: {expr}"


def panel_of(title: str) -> Panel:
    """The panel that asks this."""
    return next(panel for board in DASHBOARDS.values() for panel in board.panels() if panel.title == title)


def milliseconds(seconds: float) -> str:
    """A length as Prometheus reads it, exactly that between two samples."""
    return f"{round(seconds * 1000)}ms"


def told(prometheus: Prometheus, title: str, at_s: float, window: str, nth: int = 0) -> Series:
    """What a panel's query says over the last ``window``, with differences in the place of rates.

    A rate is extrapolated to the ends of its window, so a count can be told from it only roughly on a busy machine.
    """
    expr = with_values(panel_of(title).queries[nth].expr, __rate_interval=window)
    return prometheus.query(_RATE.sub(lambda rate: f"({rate[1]} - {rate[1]} offset {window})", expr), at_s)


def number(prometheus: Prometheus, title: str, at_s: float, window: str, nth: int = 0) -> float:
    """The one number that a panel shows, or NaN."""
    series = told(prometheus, title, at_s, window, nth)
    return float(series[0]["value"][1]) if len(series) == 1 else math.nan


def stretch(prometheus: Prometheus, at_s: float, window_s: float) -> float:
    """How many times a rate over the window may exceed what its samples tell.

    Prometheus carries the slope between a window's first and last sample on towards the window's ends, never past them.
    """
    scrapes = prometheus.query(f'up{{job="vlm-gateway"}}[{milliseconds(window_s)}]', at_s)
    spans_s = [float(each["values"][-1][0]) - float(each["values"][0][0]) for each in scrapes]
    return window_s / min(spans_s)


def headline_complaints(prometheus: Prometheus, at_s: float, window_s: float) -> Iterator[str]:
    """What the panels for people in a hurry say of the last act, against what was played.

    ``at_s`` and ``window_s`` before it are times of samples: the one before the act began, the other after it was over.
    """
    window = milliseconds(window_s)
    expected = {
        ("How do requests end?", "outcome"): OUTCOMES,
        ("Why do requests fail?", "code"): CODES,
        ("What do we do to images?", "action"): IMAGES,
        ("How do fetches end?", "result"): FETCHES,
    }
    for (title, label), counts in expected.items():
        series = told(prometheus, title, at_s, window)
        seen = {each["metric"][label]: float(each["value"][1]) for each in series if float(each["value"][1])}
        if seen != counts:
            yield f"{title} {seen}, but {counts} were played"
    total = number(prometheus, "How much is asked?", at_s, window)
    if total != sum(OUTCOMES.values()):
        yield f"{total} requests, but {sum(OUTCOMES.values())} were played"
    rate = with_values(panel_of("How much is asked?").queries[0].expr, __rate_interval=window)
    about = float(prometheus.query(rate, at_s)[0]["value"][1]) * window_s
    if not total - 1e-6 <= about <= total * stretch(prometheus, at_s, window_s) + 1e-6:
        yield f"a rate of {about / window_s}, but {total} requests in {window}"
    failed = number(prometheus, "What share fails?", at_s, window)
    if not math.isclose(failed, OUTCOMES["backend_failed"] / sum(OUTCOMES.values())):
        yield f"a share of {failed} fails"
    for nth, (name, wanted) in enumerate((("up", 2), ("known", 3))):
        backends = number(prometheus, "Which backends are there?", at_s, window, nth)
        if backends != wanted:
            yield f"{backends} backends are {name}"
    saved = number(prometheus, "What share is saved?", at_s, window)
    if not 0.5 < saved < 1:
        yield f"a share of {saved} image tokens is saved"


def play(pictures: Path | None) -> list[str]:
    """The script, and every complaint about what Prometheus says of it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ops-")))
        stage = Stage(stack, folder, QUICK if pictures is None else EVERYDAY)
        prometheus = stack.enter_context(Prometheus(stage.targets()))
        prometheus.wait_for_scrapes("vlm-gateway", 2)
        began_s = time.time()
        stage.client.post("/v1/chat/completions", json=stage.text(), headers={"Authorization": f"Bearer {TIGHT}"})
        stage.measured()
        prometheus.wait_for_scrapes("vlm-gateway", 2)
        stage.eject()
        stage.lose_engine()
        stage.drift()
        stage.crash()
        stage.lose_redis()
        stage.reload()
        act_s = prometheus.wait_for_scrapes("vlm-gateway", 2)
        stage.measured()
        at_s = prometheus.wait_for_scrapes("vlm-gateway", 2)
        complaints = list(headline_complaints(prometheus, at_s, at_s - act_s))
        at_s = prometheus.wait_for_all(
            "vlm-gateway", {"engines": [urlsplit(each.url).netloc for each in stage.living()]}
        )
        window = milliseconds(at_s - began_s + 2)
        for board in DASHBOARDS.values():
            for panel in board.panels():
                complaints += [f"{board.title}: {panel.title} {text}" for text in
                               panel_complaints(panel, prometheus, at_s, window)]  # fmt: skip
        panels = sum(1 for board in DASHBOARDS.values() for _ in board.panels())
        queries = sum(len(panel.queries) for board in DASHBOARDS.values() for panel in board.panels())
        say(
            f"{len(DASHBOARDS)} dashboards, {panels} panels, {queries} queries asked, {at_s - began_s:.0f} s of traffic"
        )
        page = httpx.get(f"{stage.gateway.admin}/metrics", trust_env=False, timeout=30).content
        promtool("check", "metrics", page=page)
        say(f"promtool has no objection to {sum(not line.startswith(b'#') for line in page.splitlines())} series")
        exemplars = prometheus.ask(
            "query_exemplars", query="vlmgw_request_duration_seconds_bucket", start=began_s, end=at_s + 1
        )
        if not any(one["labels"].get("trace_id") == TRACE for each in exemplars for one in each["exemplars"]):
            complaints.append("Prometheus has no exemplar with the trace that was sent")
        flowed_s = time.time()
        if pictures is not None:
            stage.flow(FLOW_S)

        def appears(expr: str) -> bool:
            return bool(prometheus.query_range(with_values(expr), began_s, time.time(), 1))

        annotations = {title: expr for title, expr, _ in ANNOTATIONS}
        stage.drain(seen=lambda: appears(annotations["drain"]))
        ended_s = time.time()
        if not appears(annotations["reload"]):
            complaints.append("the annotation reload never appears")
        if pictures is not None:
            draw(prometheus, pictures, flowed_s - 12, ended_s - 6)
        return complaints


def draw(prometheus: Prometheus, folder: Path, from_s: float, to_s: float) -> None:
    """Every dashboard as a picture, of the same answers."""
    for name, board in DASHBOARDS.items():
        answers: dict[int, list[list[Drawn]]] = {}
        for number, panel in enumerate(board.panels(), start=1):
            answers[number] = [
                [
                    Drawn(each["metric"], [(second, float(value)) for second, value in each["values"]])
                    for each in prometheus.query_range(
                        with_values(query.expr, __rate_interval="10s"), from_s, to_s, max(0.5, (to_s - from_s) / 160)
                    )
                ]
                for query in panel.queries
            ]
        svg = preview(board, answers)
        picture = pyvips.Image.svgload_buffer(svg.encode())
        picture.write_to_file(str(folder / f"dashboard-{name}.png"), palette=True, compression=9, effort=10)
        say(f"drawn: docs/img/dashboard-{name}.png")


def drill() -> list[str]:
    """All engines die: that alert, and only that one. Alerts hold as long as here, not as in production."""
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(*QUICK)) for _ in range(2)]
        words = [word for engine in engines for word in ("--backend", engine.url)]
        patience = {"VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "60"}
        gateway = stack.enter_context(Gateway(*words, "--pool", "1", environment=patience))
        target = gateway.admin.removeprefix("http://")
        prometheus = stack.enter_context(Prometheus({"vlm-gateway": [target]}, hold_s=DRILL_HOLD_S))
        prometheus.wait_for_scrapes("vlm-gateway", 3)
        before = prometheus.alerts() | prometheus.alerts("pending")
        for engine in engines:
            engine.kill()
        killed_s = time.monotonic()
        until(lambda: DRILL_ALERT in prometheus.alerts(), f"the alert {DRILL_ALERT}")
        after_s = time.monotonic() - killed_s
        seen = before | prometheus.alerts()
        while time.monotonic() < killed_s + after_s + DRILL_WATCH_S:
            seen |= prometheus.alerts()
            prometheus.wait_for_scrapes("vlm-gateway", 1)
        say(f"fire drill: both engines killed, {', '.join(sorted(seen))} after {after_s:.1f} s")
        further = seen - {DRILL_ALERT} - slow_scrapes(prometheus)
        return [f"fire drill: {sorted(further)}, but only {DRILL_ALERT} is true"] if further else []


def slow_scrapes(prometheus: Prometheus) -> set[str]:
    """Alerts about scrapes that are true here, and no fault of the gateway's, where the machine was that slow: what
    Prometheus' own samples say."""
    now_s = time.time()
    failed = prometheus.query('min_over_time(up{job="vlm-gateway"}[1h]) == 0', now_s)
    slow = prometheus.query('max_over_time(scrape_duration_seconds{job="vlm-gateway"}[1h]) > 1', now_s)
    return {name for name, found in (("GatewayDown", failed), ("ScrapeSlow", slow)) if found}


def main() -> int:
    """All of it; 1 where anything is wrong."""
    began_s = time.monotonic()
    static()
    say("promtool: rules, config and alerts (each firing and silent) are well")
    complaints = [*play(PICTURES if "--pictures" in sys.argv[1:] else None), *drill()]
    for complaint in complaints:
        say(complaint)
    say(f"{len(complaints)} complaints, {time.monotonic() - began_s:.0f} s")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
