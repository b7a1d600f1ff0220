"""What the gateway is worth in front of a real vLLM: the same conversation direct and through it, turn by turn.

Ten turns; each of the first five brings a photograph of 12 megapixels that nobody has seen, and each repeats all before
it. The engine (CPU build, tiny model) is started with the pixel cap that most operators set, so that both ways end in
the same number of image tokens: what is compared is the work of getting there. CPU is that of the engine's API server
process and of all the gateway's processes; the engine's core does the same for both and is left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from benchmarks.contenders import family_of, module, started
from benchmarks.conversation import PICTURES, TURNS, ask_streaming, fresh, photographs, turn_body
from benchmarks.timing import Options, machine_facts
from tests.engine.vllm import VllmServer

_ROOT = Path(__file__).parent.parent
_MODEL = "tiny-qwen3vl"
_CAP_PIXELS = 1280 * 32 * 32
_CONVERSATIONS = 5
_TICKS = os.sysconf("SC_CLK_TCK")
_LOSSLESS = "lossless"
# By how much a logprob may differ from what the engine's own shrink gives. Ours makes the same pixels (torchvision's
# antialiased bicubic on 8 bits is Pillow's), so this leaves room for the order of additions in float32 alone; another
# photograph differs by hundreds of times as much.
LOGPROB_BOUND = 1e-3
ARMS = ("direct", "gateway")


@dataclass(slots=True)
class Arm:
    """One way to the engine, summed over one conversation."""

    front_end_s: float = 0.0
    gateway_s: float = 0.0
    engine_bytes: float = 0.0
    first_token_ms: list[float] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    cached_tokens: list[int] = field(default_factory=list)
    by_id: int = 0

    @property
    def cpu_s(self) -> float:
        return self.front_end_s + self.gateway_s


@dataclass(frozen=True, slots=True)
class Site:
    """The engine, and the gateway in front of it."""

    engine: VllmServer
    engine_port: int
    engine_pid: int
    gateway_port: int
    gateway_pid: int

    def port(self, arm: str) -> int:
        return self.engine_port if arm == "direct" else self.gateway_port


def run(options: Options) -> dict[str, object]:
    """``cpu_ratio_total``, ``bytes_ratio``, ``first_token_ms``: medians over the conversations of one run."""
    files = photographs()
    with _site() as site:
        _converse(site, files, "warm", turns=2)
        told = [_converse(site, files, f"c{number}") for number in range(options.rounds or _CONVERSATIONS)]
        logprobs = _logprobs(site, files)
    first_token = {arm: [ms for each in told for ms in each[arm].first_token_ms[1:]] for arm in ARMS}
    return {
        "cpu_ratio_total": _median(each["gateway"].cpu_s / each["direct"].cpu_s for each in told),
        "bytes_ratio": _median(each["gateway"].engine_bytes / each["direct"].engine_bytes for each in told),
        "first_token_ms": {arm: round(statistics.median(first_token[arm]), 1) for arm in ARMS},
        "same_prompt_tokens": all(each["direct"].prompt_tokens == each["gateway"].prompt_tokens for each in told),
        "logprobs": logprobs,
        "conversations": len(told),
        "turns": TURNS,
        "medians": {arm: _told([each[arm] for each in told]) for arm in ARMS},
        "first_token_ms_by_turn": {
            arm: [_median((each[arm].first_token_ms[turn] for each in told), 1) for turn in range(TURNS)]
            for arm in ARMS
        },
        "machine": machine_facts(),
    }


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    medians = cast("Mapping[str, Mapping[str, Any]]", report["medians"])
    first = cast("Mapping[str, float]", report["first_token_ms"])
    lines = [
        f"{arm:8} {row['front_end_cpu_s']:6.2f} s of API server + {row['gateway_cpu_s']:5.2f} s of gateway   "
        f"{row['engine_bytes'] / 1e6:8.2f} MB to the engine   first token {first[arm]:7.1f} ms"
        for arm, row in medians.items()
    ]
    logprobs = cast("Mapping[str, float]", report["logprobs"])
    return [
        *lines,
        f"CPU {report['cpu_ratio_total']} x, bytes {report['bytes_ratio']} x of direct",
        f"same token counts: {report['same_prompt_tokens']}",
        f"logprobs to the engine's own shrink: lossless {logprobs['lossless']} (bound {logprobs['bound']})",
        f"as JPEG {logprobs['jpeg']}, of another picture {logprobs['other_picture']}",
    ]


def _median(values: Iterator[float] | list[float], digits: int = 4) -> float:
    return round(statistics.median(values), digits)


def _told(arms: list[Arm]) -> dict[str, object]:
    return {
        "front_end_cpu_s": _median([arm.front_end_s for arm in arms], 2),
        "gateway_cpu_s": _median([arm.gateway_s for arm in arms], 2),
        "engine_bytes": int(statistics.median(arm.engine_bytes for arm in arms)),
        "prompt_tokens": arms[0].prompt_tokens,
        "cached_tokens": arms[0].cached_tokens,
        "images_by_id": int(statistics.median(arm.by_id for arm in arms)),
    }


# --- asking -----------------------------------------------------------------------------------------------------------


def _converse(site: Site, files: list[bytes], mark: str, turns: int = TURNS) -> dict[str, Arm]:
    """One conversation each way, turn by turn; who goes first alternates."""
    arms = {arm: Arm() for arm in ARMS}
    urls = {arm: [fresh(file, f"{mark}.{arm}.{n}") for n, file in enumerate(files)] for arm in ARMS}
    for turn in range(turns):
        for arm in ARMS if turn % 2 else reversed(ARMS):
            body = turn_body(
                _MODEL, urls[arm][:PICTURES], turn, max_tokens=1, stream=True, stream_options={"include_usage": True}
            )
            _take_turn(site, arm, body, arms[arm])
    return arms


def _take_turn(site: Site, arm: str, body: bytes, sums: Arm) -> None:
    sums.engine_bytes -= _received_bytes(site)
    before = _spent_s(site)
    said = ask_streaming(site.port(arm), body)
    after = _spent_s(site)
    sums.engine_bytes += _received_bytes(site)
    sums.front_end_s += after[0] - before[0]
    # Through the gateway everything is its work; direct, nothing is, whatever it does in the background.
    sums.gateway_s += after[1] - before[1] if arm == "gateway" else 0.0
    sums.first_token_ms.append(1e3 * said.first_token_s)
    sums.prompt_tokens.append(said.usage["prompt_tokens"])
    sums.cached_tokens.append((said.usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    told = said.headers.get("x-vlmgw-images", "").partition("by_id=")[2]
    sums.by_id += int(told or 0)


def _spent_s(site: Site) -> tuple[float, float]:
    """CPU seconds of the API server, and of the gateway with all its processes."""
    return _cpu_s(site.engine_pid), sum(_cpu_s(pid) for pid in family_of(site.gateway_pid))


def _received_bytes(site: Site) -> float:
    """The engine's own count; asked outside the span whose CPU is counted, for its metrics page costs some 10 ms."""
    return site.engine.metric("http_request_size_bytes_sum", handler="/v1/chat/completions")


def _cpu_s(pid: int) -> float:
    """Of all threads of one process, ended ones included, and of the children it has outlived; in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def _logprobs(site: Site, files: list[bytes]) -> dict[str, float]:
    """The largest difference of a first token's 20 best logprobs to those after the engine's own shrink."""
    lossless, jpeg, other = 0.0, 0.0, []
    direct = [_fingerprint(site.engine_port, fresh(file, "direct")) for file in files]
    for number, file in enumerate(files):
        lossless = max(lossless, _apart(direct[number], _fingerprint(site.gateway_port, fresh(file, "l"), _LOSSLESS)))
        jpeg = max(jpeg, _apart(direct[number], _fingerprint(site.gateway_port, fresh(file, "j"))))
        other.append(_apart(direct[number], direct[number - 1]))
    found = {"lossless": lossless, "jpeg": jpeg, "other_picture": min(other), "bound": LOGPROB_BOUND}
    return {name: round(value, 5) for name, value in found.items()}


def _fingerprint(port: int, url: str, task: str | None = None) -> dict[str, float]:
    body = turn_body(_MODEL, [url], 0, max_tokens=1, logprobs=True, top_logprobs=20)
    headers = {"Content-Type": "application/json"} | ({"x-vlmgw-task": task} if task else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=300) as response:
        answer = json.load(response)
    tops = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    return {top["token"]: top["logprob"] for top in tops}


def _apart(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Over the tokens that both name; a token that only one has is as far away as the other's last."""
    least = {id(each): min(each.values()) for each in (one, other)}
    return max(
        abs(one.get(token, least[id(one)]) - other.get(token, least[id(other)])) for token in one.keys() | other.keys()
    )


# --- processes --------------------------------------------------------------------------------------------------------


def _engine_folder() -> Path:
    """Where tests/engine/run has installed the engine, which it does now if need be."""
    folder = Path(os.environ.get("VLMGW_ENGINE_DIR", _ROOT / ".engine"))
    if subprocess.run([_ROOT / "tests/engine/run", "--install"], check=False, cwd=_ROOT).returncode:
        raise SystemExit("value needs the real engine, which cannot be installed here")
    return folder


@contextmanager
def _site() -> Iterator[Site]:
    with ExitStack() as stack:
        cap = f'--mm-processor-kwargs={{"max_pixels":{_CAP_PIXELS}}}'
        engine = VllmServer(_engine_folder(), "qwen3vl", _MODEL, cap)
        stack.callback(engine.end)
        engine.begin()
        engine.wait_healthy()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "policies").mkdir()
        tasks = {"chat": {}, _LOSSLESS: {"output": "png"}}
        (folder / "policies" / "default.yaml").write_text(json.dumps({"tasks": tasks}))
        config = {
            "server": {"port": 0, "admin_port": 0, "settle_s": 0.0, "drain_timeout_s": 1.0},
            "upstream": {"discovery_timeout_s": 30.0, "probe_timeout_s": 20.0},
            "backends": [{"url": engine.url, "name": "engine", "max_pixels": _CAP_PIXELS}],
            "policies": str(folder / "policies"),
        }
        (folder / "gateway.yaml").write_text(json.dumps(config))
        command = module("gateway", "serve", "--config", str(folder / "gateway.yaml"))
        gateway, ready = stack.enter_context(started(command))
        # The access log is written, as in service, and thrown away by the reader.
        drain = subprocess.Popen(["cat"], stdin=gateway.stdout, stdout=subprocess.DEVNULL)
        stack.callback(drain.kill)
        port = int(engine.url.rpartition(":")[2])
        yield Site(engine, port, engine.pid, int(str(ready["data_port"])), gateway.pid)
