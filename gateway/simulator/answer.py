"""What the simulator says: deterministic text about what reached it, one token a piece.

The answer names each picture's size as the model sees it, its tokens and its mean colour, so a client can check from
outside that the right picture arrived; log probabilities depend on every pixel and every prompt token. A tool is
called when one is offered and the last user text says "call tool" (or `tool_choice` demands it); JSON is answered
when JSON is asked for.
"""

import hashlib
import json
import struct
from dataclasses import dataclass

from gateway.simulator import tokens
from gateway.simulator.fields import Json, JsonObject, mapping, sequence, text
from gateway.simulator.prompt import Prompt

TOOL_TRIGGER = "call tool"
_FILLER = " and so on"
_QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tool to be called: its name and the JSON Schema of its arguments."""

    name: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class Sampling:
    """What bounds and shapes an answer. `max_tokens` is already within the context; `schema` is None unless JSON is
    asked for, then the schema or an empty object."""

    max_tokens: int
    choices: int = 1
    ignore_eos: bool = False
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    schema: Json = None
    tool: ToolOffer | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One choice. The pieces of a tool call are its arguments; `stop_reason` is the stop string that was met."""

    pieces: tuple[str, ...]
    finish_reason: str
    stop_reason: str | None = None
    tool: ToolOffer | None = None

    @property
    def content(self) -> str:
        return "".join(self.pieces)


def compose(prompt: Prompt, sampling: Sampling, choice: int = 0) -> Reply:
    """The whole answer for one choice, cut to what the sampling allows."""
    full, ended = _wanted_text(prompt, sampling, choice), "stop"
    stop_reason = None
    for stop in sampling.stop:
        position = full.find(stop) if stop else -1
        if position >= 0:
            full, stop_reason = full[:position], stop
    cut = tokens.pieces(full)
    wanted = sampling.max_tokens if sampling.ignore_eos else min(sampling.min_tokens, sampling.max_tokens)
    filler = tokens.pieces(_FILLER)
    while len(cut) < wanted:
        cut += filler
    if sampling.ignore_eos or len(cut) > sampling.max_tokens:
        return Reply(tuple(cut[: sampling.max_tokens]), "length", tool=sampling.tool)
    return Reply(tuple(cut), "tool_calls" if sampling.tool else ended, stop_reason, sampling.tool)


def _wanted_text(prompt: Prompt, sampling: Sampling, choice: int) -> str:
    if sampling.tool is not None:
        return json.dumps(example(sampling.tool.parameters), ensure_ascii=False)
    said = describe(prompt) if choice == 0 else f"{describe(prompt)} (choice {choice})"
    if sampling.schema is None:
        return said
    return json.dumps(example(sampling.schema) if sampling.schema else {"answer": said}, ensure_ascii=False)


def describe(prompt: Prompt) -> str:
    """One or two sentences about pictures and text of a prompt."""
    parts = [
        f"{picture.raster.width}x{picture.raster.height} ({picture.tokens} tokens, {picture.raster.mean_hex})"
        for picture in prompt.pictures
    ]
    seen = f" I see {len(parts)} image{'s' if len(parts) > 1 else ''}: {', '.join(parts)}." if parts else ""
    quoted = prompt.last_user_text.strip()[:_QUOTED_CHARACTERS]
    return f"Simulated answer.{seen} You wrote: {quoted}" if quoted else f"Simulated answer.{seen}"


def chosen_tool(tools: Json, choice: Json, last_user_text: str) -> ToolOffer | None:
    """Which tool to call, None when none is."""
    offers = [mapping(mapping(tool).get("function") or tool) for tool in sequence(tools)]
    if not offers or choice == "none":
        return None
    demanded = text(mapping(mapping(choice).get("function")).get("name")) or text(mapping(choice).get("name"))
    for offer in offers:
        if demanded and offer.get("name") == demanded:
            return _offer(offer)
    is_wanted = choice == "required" or mapping(choice).get("type") == "any" or TOOL_TRIGGER in last_user_text.lower()
    return _offer(offers[0]) if is_wanted else None


def _offer(tool: object) -> ToolOffer:
    entry = tool if isinstance(tool, dict) else {}
    return ToolOffer(text(entry.get("name")), entry.get("parameters") or entry.get("input_schema") or {})


def example(schema: Json) -> Json:
    """A small value that fits a JSON Schema's types, enums and required properties."""
    rules = mapping(schema)
    choices = sequence(rules.get("enum"))
    if choices:
        return choices[0]
    kind = rules.get("type")
    properties = mapping(rules.get("properties"))
    if kind == "object" or properties:
        required = sequence(rules.get("required")) or list(properties)
        filled: JsonObject = {text(name): example(properties.get(text(name))) for name in required}
        return filled
    if kind == "array":
        return [example(rules.get("items"))]
    plain: JsonObject = {"string": "simulated", "integer": 1, "number": 1.5, "boolean": True, "null": None}
    return plain.get(text(kind), "simulated")


class Logprobs:
    """Log probabilities that follow from prompt, pixels and seed: equal input gives equal numbers, any other input
    gives others."""

    def __init__(self, prompt: Prompt, seed: int) -> None:
        digest = hashlib.sha256(str(seed).encode())
        digest.update(struct.pack(f"<{prompt.length}I", *prompt.token_ids))
        for picture in prompt.pictures:
            digest.update(picture.raster.fingerprint.encode())
        self._key = digest.digest()

    def of(self, position: int, rank: int = 0) -> float:
        """In (-2, 0) for the chosen token, one to two lower for each further rank."""
        drawn = hashlib.blake2b(f"{position}:{rank}".encode(), key=self._key, digest_size=4).digest()
        return round(-2.0 * (int.from_bytes(drawn, "big") + 1) / 2**32, 6) - 2.0 * rank
