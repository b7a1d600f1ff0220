"""A Prometheus of a run's own on loopback, asked through its HTTP API, and promtool.

Decided here: how it is started (a scrape a second, our rules evaluated every second, exemplars kept) and asked. Not
decided here: what is asked.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import yaml

from tests.e2e.processes import until
from tests.grafana.known import RULES
from tests.ports import free_port

Series = list[dict[str, Any]]
# Prometheus moves a scrape's time by up to 2 ms, so that samples lie evenly (scrape.ScrapeTimestampTolerance).
_ALIGNED_S = 0.005
_SETTLED_S = 3


def quick_rules(hold_s: int | None) -> dict[str, Any]:
    """Our rules, looked at every second; ``hold_s``: no alert waits longer than that."""
    groups = [group for path in sorted(RULES.iterdir()) for group in yaml.safe_load(path.read_text())["groups"]]
    for group in groups:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if hold_s is not None and "for" in rule:
                rule["for"] = f"{hold_s}s"
    return {"groups": groups}


class Prometheus:
    """Scrapes ``jobs`` (name -> targets) from the moment it is entered."""

    def __init__(self, jobs: Mapping[str, list[str]], hold_s: int | None = None) -> None:
        self._jobs = jobs
        self._hold_s = hold_s

    def __enter__(self) -> Prometheus:
        self._folder = tempfile.TemporaryDirectory(prefix="prometheus-")
        folder = Path(self._folder.name)
        (folder / "rules.yaml").write_text(yaml.safe_dump(quick_rules(self._hold_s)))
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {"job_name": name, "static_configs": [{"targets": targets}]} for name, targets in self._jobs.items()
            ],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        port = free_port()
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", "--log.level=error"],
        )  # fmt: skip
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30)
        try:
            until(self._is_ready, "a ready Prometheus")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, "Prometheus has ended"
        try:
            return self._client.get("/-/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def ask(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer. Raises AssertionError with Prometheus' own words."""
        answer = self._client.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", f"{parameters}: {answer.get('error')}"
        return answer["data"]

    def query(self, expr: str, at_s: float) -> Series:
        """An instant query's series, or one without labels for a number."""
        data = self.ask("query", query=expr, time=at_s)
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        found: Series = data["result"]
        return found

    def query_range(self, expr: str, from_s: float, to_s: float, step_s: float) -> Series:
        found: Series = self.ask("query_range", query=expr, start=from_s, end=to_s, step=step_s)["result"]
        return found

    def alerts(self, state: str = "firing") -> set[str]:
        """The names of alerts in this state."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == state}

    def wait_for_scrapes(self, job: str, count: int) -> float:
        """When every target of a job has answered so many scrapes that began from now on: the time of the last.

        It is the time of its samples: whoever asks for that moment gets them and nothing older. A scrape that came to
        nothing (a second is all that one may take) does not count: until the next one the target has no samples at all.
        """
        after_s = time.time() + _ALIGNED_S

        def times() -> list[float]:
            """Of the last of the wanted scrapes, by target; empty while one lacks some."""
            targets = self.query(f'up{{job="{job}"}}[1h]', time.time())
            answered = [[at for at, up in each["values"] if at > after_s and float(up)] for each in targets]
            return [each[count - 1] for each in answered] if all(len(each) >= count for each in answered) else []

        return max(until(times, f"{count} scrapes of {job}"))

    def wait_for_all(self, job: str, further: Mapping[str, Sequence[str]]) -> float:
        """A moment at which a job's last scrapes were all answered, and the last one of every ``further`` target (by
        job), so that whatever is asked of that moment has an answer. Rules look every second and need some of them.
        """

        def found() -> float:
            at_s = self.wait_for_scrapes(job, 1)
            lately = self.query(f'min_over_time(up{{job="{job}"}}[{_SETTLED_S}s])', at_s)
            answered = {
                (each["metric"]["job"], each["metric"]["instance"]): float(each["value"][1])
                for each in self.query("up", at_s)
            }
            wanted = [(job, target) for job, targets in further.items() for target in targets]
            is_whole = all(float(each["value"][1]) for each in lately) and all(answered.get(each) for each in wanted)
            return at_s if is_whole else 0.0

        return until(found, "a moment without a failed scrape")


def promtool(*words: str, page: bytes | None = None) -> str:
    """Run it; what it said. Raises AssertionError when it objects."""
    done = subprocess.run(["promtool", *words], input=page, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, f"promtool {' '.join(words[:2])}: {said}"
    return said
