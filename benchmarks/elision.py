"""Conversations that grow by a screenshot a turn: what an engine's prefix cache keeps, by how old images are left out.

Nothing is timed. Every turn is a real request: the gateway's own dialect reads it and the gateway's own policy leaves
images out; what is left becomes tokens (screens in three sizes, priced by the served model) and 16-token blocks, hashed
and looked up by the rules of the engine simulator's prefix cache, which are vLLM's. A turn is *unaffected* if every
full block of the turn before is still a prefix of its own prompt and found in the cache. The cache holds the whole
conversation, so whatever is computed anew is the policy's doing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from benchmarks.timing import Options
from gateway.cli.chart import Panel, Series, draw
from gateway.dialects.openai_chat import OpenAIChat
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.dropping import batches_beyond
from gateway.policy.effective import EffectivePolicy, Excess, History, OnExcess
from gateway.policy.policyset import DEFAULT_TENANT, builtin_policies
from gateway.policy.resolve import resolve
from gateway.simulator.caches import BlockPool, block_hashes
from gateway.simulator.prompt import Span
from gateway.stages.omission import MARKER, leave_out, within_count
from gateway.types import Call, JsonObject, Size

TURNS = 200
_MODEL = "Qwen/Qwen3-VL-8B-Instruct"
_KEPT = 20
_BATCH = 10
_TOKENS = 40_000
_BLOCK_TOKENS = 16
_POOL_BLOCKS = 1 << 20
_SCREENS = (Size(1280, 800), Size(1920, 1080), Size(1170, 2532))
_TARGET = 0.9
_IMAGE_TOKEN = 151_655  # <|image_pad|>

LeaveOut = Callable[[Call, JsonObject, list[int]], Call]


@dataclass(slots=True)
class _Told:
    """One way of leaving images out, turn by turn."""

    unaffected: list[bool]
    prompt_tokens: list[int]
    computed_tokens: list[int]
    images: list[int]


def _policies() -> dict[str, LeaveOut]:
    built_in = resolve(builtin_policies(), tenant=DEFAULT_TENANT, header_task=None, model=None, body_task=None)
    last = replace(built_in, max_images=_KEPT, on_excess=OnExcess(max_images=Excess.DROP_OLDEST))
    by_count = replace(built_in, max_images=None, history=History(images=_KEPT, batch=_BATCH))
    by_tokens = History(tokens=_TOKENS, batch=_BATCH)

    def counted(policy: EffectivePolicy) -> LeaveOut:
        return lambda call, tree, _tokens: within_count(policy, call, tree)

    def priced(call: Call, tree: JsonObject, tokens: list[int]) -> Call:
        return leave_out(call, batches_beyond(by_tokens, call, tokens, _TOKENS), tree)

    return {
        f"keep the last {_KEPT}": counted(last),
        f"history, above {_KEPT} images": counted(by_count),
        f"history, above {_TOKENS:,} tokens": priced,
    }


def _turn(number: int) -> list[JsonObject]:
    """What a turn adds: the agent's last step, and the screen after it."""
    screen: JsonObject = {"type": "image_url", "image_url": {"url": f"https://screens.example/{number}.png"}}
    ask: JsonObject = {"type": "text", "text": f"Screen {number} after your last step. What do you do next? " * 4}
    answer: JsonObject = {"role": "assistant", "content": f"Step {number}: I click the button that is shown. " * 6}
    return [{"role": "user", "content": [ask, screen]}, answer]


def _prompt(tree: JsonObject, tokens_of: Callable[[str], int]) -> tuple[list[int], list[Span]]:
    """Token ids (a word is a token) and where the images lie."""
    ids: list[int] = []
    spans: list[Span] = []
    for message in cast("list[JsonObject]", tree["messages"]):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[JsonObject]", content)
        for part in parts:
            if part["type"] == "text":
                ids += [_token(word) for word in str(part["text"]).split()]
                continue
            url = str(cast("JsonObject", part["image_url"])["url"])
            length = tokens_of(url)
            spans.append(Span(len(ids), length, url))
            ids += [_IMAGE_TOKEN] * length
    return ids, spans


def _token(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")


def simulate(turns: int) -> dict[str, _Told]:
    """Every policy over the same conversation of so many turns."""
    book = ModelBook(shipped_catalog())
    served = book.serve(_MODEL, ())
    prices = [served.family.plan(screen, served.checkpoint, cap_pixels=None, cap_tokens=None) for screen in _SCREENS]
    each = [served.family.image_tokens(found.size, served.checkpoint).tokens for found in prices]

    def tokens_of(url: str) -> int:
        return each[int(url.rpartition("/")[2].removesuffix(".png")) % len(each)]

    told = {}
    for name, leave in _policies().items():
        told[name] = _one(turns, leave, tokens_of)
    return told


def _one(turns: int, leave: LeaveOut, tokens_of: Callable[[str], int]) -> _Told:
    pool, told = BlockPool(_POOL_BLOCKS), _Told([], [], [], [])
    before = 0
    for count in range(1, turns + 1):
        messages = [message for number in range(count) for message in _turn(number)][:-1]
        tree: JsonObject = {"model": _MODEL, "messages": list(messages)}
        call = OpenAIChat().read(tree)
        left = leave(call, tree, [tokens_of(str(image.source)) for image in call.images])
        ids, spans = _prompt(tree, tokens_of)
        hashes = block_hashes(ids, spans, None, _BLOCK_TOKENS)
        hits = pool.known_prefix(hashes)
        lease = pool.acquire(hashes, len(hashes), len(hashes))
        assert lease is not None, "the pool holds more than the conversation"
        pool.release(lease)
        told.unaffected.append(hits >= before)
        told.prompt_tokens.append(len(ids))
        told.computed_tokens.append(len(ids) - hits * _BLOCK_TOKENS)
        told.images.append(len(left.images))
        before = len(hashes)
    return told


def run(options: Options) -> dict[str, object]:
    """Share of turns whose prefix is unaffected: of all, and of those in which there is something to leave out."""
    turns = options.rounds or TURNS
    policies: dict[str, object] = {}
    for name, told in simulate(turns).items():
        later = told.unaffected[_KEPT:]
        policies[name] = {
            "unaffected_ratio": round(sum(told.unaffected) / turns, 3),
            "unaffected_ratio_beyond": round(sum(later) / max(1, len(later)), 3),
            "most_images": max(told.images),
            "prompt_tokens": sum(told.prompt_tokens),
            "computed_tokens": sum(told.computed_tokens),
            "computed_tokens_by_turn": told.computed_tokens,
        }
    shares = [cast("dict[str, float]", found)["unaffected_ratio_beyond"] for found in policies.values()]
    return {
        "turns": turns,
        "model": _MODEL,
        "marker": MARKER,
        "policies": policies,
        "within_budget": shares[0] == 0 and min(shares[1:]) >= _TARGET,
    }


def table(report: dict[str, object]) -> list[str]:
    """The report for people."""
    lines = [f"{report['turns']} turns, a screenshot each, {report['model']}"]
    lines.append(f"{'':32} {'prefix kept':>12} {'beyond ' + str(_KEPT):>12} {'images':>7} {'computed tokens':>16}")
    for name, found in cast("dict[str, dict[str, float]]", report["policies"]).items():
        lines.append(
            f"{name:32} {found['unaffected_ratio']:>12.1%} {found['unaffected_ratio_beyond']:>12.1%} "
            f"{found['most_images']:>7} {found['computed_tokens']:>16,}"
        )
    return [*lines, f"within budget ({_TARGET:.0%} where keeping the last {_KEPT} has none): {report['within_budget']}"]


def chart(report: dict[str, object]) -> str:
    """Tokens computed anew, turn by turn."""
    found = cast("dict[str, dict[str, list[float]]]", report["policies"])
    series = [Series(name, each["computed_tokens_by_turn"]) for name, each in found.items()]
    panel = Panel("Prompt tokens that the engine computes anew", "turn of the conversation", series)
    return draw("A conversation that grows by a screenshot a turn", [panel])
