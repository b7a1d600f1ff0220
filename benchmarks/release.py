"""Holding requests back so that they reach an engine together: what it would win, step by step of an imagined engine.

Nothing is timed. The engine batches continuously, as vLLM and SGLang do: a step computes one token of everything that
decodes, and as many waiting prompt tokens as its budget has room for. A step takes ``_STEP_S`` and a little for each
sequence, its prompt tokens at ``_PREFILL_TOKENS_PER_S``, and ``penalty`` more when it has any (a step with prompts is
not replayed from a captured graph); that penalty, paid once for all prompts of a step, is what holding back could save.
Two ways of holding back, each for at most so many milliseconds. *Requests*: the first of a group waits and all go that
came meanwhile (arrivals by chance). *Answers*: the first that is complete waits and all end together, so that clients
which go on at once (agents, batches of documents) come back together: there the pace of all is what counts.

Numbers of the engine: those of the simulator's cost model and of ``routing.ask.Profile`` (a 7-8B model on one GPU).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.timing import Options

HOLDS_MS = (0, 2, 5, 10, 20, 50)
PENALTIES_MS = (0, 5, 15)
LOADS = (0.5, 0.8, 0.95)
CLIENTS = (8, 32, 128)
_STEP_S = 0.0125
_SEQUENCE_S = 0.00025
_PREFILL_TOKENS_PER_S = 10_000.0
_BUDGET_TOKENS = 8192
_PROMPT_TOKENS = (200, 400, 1_500, 1_500, 3_000)  # texts, and questions about one or two pictures
_ANSWER_TOKENS = 60
_REQUESTS = 3_000
# Better by less than this is within what another seed gives.
_NOISE = 0.02


@dataclass(slots=True)
class _Request:
    came_s: float
    prompt_left: int
    answer_left: int = _ANSWER_TOKENS


class _Clients:
    """So many, each with one request at a time; the next one comes when its answer is let go."""

    def __init__(self, clients: int, requests: int, hold_s: float) -> None:
        self._chance = random.Random(7)
        self._left = requests - clients
        self._hold_s = hold_s
        self._until_s = -1.0
        self.due: deque[tuple[float, tuple[float, int]]] = deque()
        for _ in range(clients):
            self._comes(0.0)

    def ended(self, now_s: float) -> None:
        if now_s > self._until_s:
            self._until_s = now_s + self._hold_s
        if self._left > 0:
            self._left -= 1
            self._comes(self._until_s)

    def _comes(self, at_s: float) -> None:
        self.due.append((at_s, (at_s, self._chance.choice(_PROMPT_TOKENS))))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run: seconds to first tokens from arrival at the gateway, seconds between tokens, seconds in all."""

    first_mean_s: float
    first_p99_s: float
    between_p99_s: float
    prefill_steps: int
    all_s: float


def arrivals(rate_per_s: float, count: int, seed: int) -> list[tuple[float, int]]:
    """When requests come, and how long their prompts are."""
    chance = random.Random(seed)
    now_s, found = 0.0, []
    for _ in range(count):
        now_s += chance.expovariate(rate_per_s)
        found.append((now_s, chance.choice(_PROMPT_TOKENS)))
    return found


def released(came: list[tuple[float, int]], hold_s: float) -> list[float]:
    """When each goes on: with all that came within ``hold_s`` of the first one held."""
    times: list[float] = []
    until_s = -1.0
    for at_s, _ in came:
        if at_s > until_s:
            until_s = at_s + hold_s
        times.append(until_s)
    return times


def engine(
    due: deque[tuple[float, tuple[float, int]]], penalty_s: float, ended: Callable[[float], None] = lambda _now_s: None
) -> Outcome:
    """Serve everything to its end; ``ended`` may add to what is due."""
    waiting: deque[_Request] = deque()
    decoding: list[_Request] = []
    firsts: list[float] = []
    between: list[float] = []
    now_s, prefill_steps = 0.0, 0
    while due or waiting or decoding:
        if not waiting and not decoding:
            now_s = max(now_s, due[0][0])
        while due and due[0][0] <= now_s:
            _, (came_s, tokens) = due.popleft()
            waiting.append(_Request(came_s, tokens))
        budget, done = _BUDGET_TOKENS - len(decoding), list[_Request]()
        computed = 0
        while waiting and computed < budget:
            part = min(waiting[0].prompt_left, budget - computed)
            waiting[0].prompt_left -= part
            computed += part
            if not waiting[0].prompt_left:
                done.append(waiting.popleft())
        step_s = _STEP_S + _SEQUENCE_S * len(decoding) + computed / _PREFILL_TOKENS_PER_S
        if computed:
            step_s += penalty_s
            prefill_steps += 1
        now_s += step_s
        between += [step_s] * len(decoding)
        firsts += [now_s - request.came_s for request in done]
        for request in decoding:
            request.answer_left -= 1
        for _ in range(sum(not request.answer_left for request in decoding)):
            ended(now_s)
        decoding = [request for request in decoding if request.answer_left] + done
    firsts.sort()
    between.sort()
    return Outcome(
        sum(firsts) / len(firsts),
        firsts[len(firsts) * 99 // 100],
        between[len(between) * 99 // 100],
        prefill_steps,
        now_s,
    )


def run(options: Options) -> dict[str, object]:
    """Every load, penalty and hold. ``wins``: where the mean first token came sooner, or all requests were done so."""
    count = _REQUESTS if options.rounds is None else options.rounds
    rows: list[dict[str, object]] = []
    wins = 0
    for penalty_ms in PENALTIES_MS:
        prompt = sum(_PROMPT_TOKENS) / len(_PROMPT_TOKENS)
        alone_s = prompt / _PREFILL_TOKENS_PER_S + penalty_ms / 1e3 + _ANSWER_TOKENS * _SEQUENCE_S
        for load in LOADS:
            came = arrivals(load / alone_s, count, seed=7)
            outcomes = [
                engine(deque(zip(released(came, h / 1e3), came, strict=True)), penalty_ms / 1e3) for h in HOLDS_MS
            ]
            rows += [
                _row("requests", f"load {load:.2f}", penalty_ms, *each) for each in zip(HOLDS_MS, outcomes, strict=True)
            ]
            wins += sum(each.first_mean_s < outcomes[0].first_mean_s * (1 - _NOISE) for each in outcomes)
        for clients in CLIENTS:
            outcomes = []
            for hold_ms in HOLDS_MS:
                crowd = _Clients(clients, count, hold_ms / 1e3)
                outcomes.append(engine(crowd.due, penalty_ms / 1e3, crowd.ended))
            rows += [
                _row("answers", f"{clients} clients", penalty_ms, *each)
                for each in zip(HOLDS_MS, outcomes, strict=True)
            ]
            wins += sum(each.all_s < outcomes[0].all_s * (1 - _NOISE) for each in outcomes)
    held = len(rows) * (len(HOLDS_MS) - 1) // len(HOLDS_MS)
    return {"rows": rows, "wins": wins, "of": held}


def _row(held: str, load: str, penalty_ms: int, hold_ms: int, outcome: Outcome) -> dict[str, object]:
    return {
        "held": held,
        "load": load,
        "penalty_ms": penalty_ms,
        "hold_ms": hold_ms,
        "first_mean_ms": round(outcome.first_mean_s * 1e3, 1),
        "first_p99_ms": round(outcome.first_p99_s * 1e3, 1),
        "between_p99_ms": round(outcome.between_p99_s * 1e3, 1),
        "prefill_steps": outcome.prefill_steps,
        "all_s": round(outcome.all_s, 1),
    }


def table(report: dict[str, object]) -> list[str]:
    """One line per run."""
    lines = ["held      load         penalty   hold   first token mean / p99   between p99   prompt steps   in all"]
    rows = report["rows"]
    lines += [
        f"{row['held']:9} {row['load']:11} {row['penalty_ms']:4} ms {row['hold_ms']:4} ms"
        f" {row['first_mean_ms']:9.1f} / {row['first_p99_ms']:8.1f} ms {row['between_p99_ms']:9.1f} ms"
        f" {row['prefill_steps']:10} {row['all_s']:10.1f} s"
        for row in (rows if isinstance(rows, list) else ())
    ]
    return [*lines, f"holding back won {report['wins']} of {report['of']}"]
