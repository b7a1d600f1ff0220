"""Answers that are changed on their way, for those who ask: coordinates taken back, and what was done told in the body.

Decided here: who asked for what, whether it can be done, and how an answer is edited as it passes: a whole body at its
end, a stream event by event. Not decided here: which numbers are coordinates (``models.grounding``), where text stands
(``dialects``). A response that nobody asked to change never comes here, and what cannot be read is relayed as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.dialects import Dialect
from gateway.dialects.sse import BOUNDARY, DATA
from gateway.errors import GatewayError, InvalidRequest
from gateway.models.book import ServedModel
from gateway.models.grounding import CoordinateForm, CoordinateText, Frame, mapped
from gateway.policy.effective import Coordinates, Disclosure, EffectivePolicy
from gateway.record import RequestHead
from gateway.splice.edit import Operation, RemoveMember, SetMember, SetString, SetValue, edit, splice
from gateway.splice.skeleton import Skeleton, cut
from gateway.types import Answer, AnswerText, Call, HeaderList, ImagePlan, Json, JsonObject, LongString, Pointer, Span

COORDINATES_HEADER = "x-vlmgw-coordinates"
DISCLOSURE_HEADER = "x-vlmgw-disclosure"
MEMBER = "vlmgw"
_USAGE_PLACES: tuple[tuple[str, ...], ...] = (("usage",), ("response", "usage"), ("message", "usage"))
# A body or an event beyond this is relayed as it is: no answer of text is so long.
_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be done to an answer. ``member`` is the JSON of the disclosure, told in the answer or in its usage."""

    frame: Frame | None
    member: bytes | None
    is_in_usage: bool = False


def wish_of(
    policy: EffectivePolicy, head: RequestHead, served: ServedModel, call: Call, plans: Sequence[ImagePlan]
) -> Wish | None:
    """What the client or its policy asks for; ``None`` where that is nothing.

    Raises InvalidRequest where coordinates shall be those of the original and cannot be: a model whose way of writing
    them is not documented, or images of different geometry, among which an answer does not tell.
    """
    if not plans:
        return None
    coordinates = _asked(head, COORDINATES_HEADER, Coordinates, policy.answer_coordinates)
    disclosure = _asked(head, DISCLOSURE_HEADER, Disclosure, policy.disclosure)
    frame = _frame(policy, served, plans) if coordinates is Coordinates.ORIGINAL else None
    is_in_usage = disclosure is Disclosure.USAGE
    member = None if disclosure is Disclosure.HEADERS else _member(served, call, plans, frame, with_sums=is_in_usage)
    return None if frame is None and member is None else Wish(frame, member, is_in_usage)


def _asked(head: RequestHead, name: str, kind: type[Coordinates] | type[Disclosure], default: str) -> str:
    asked = (head.header(name) or "").strip().lower()
    if not asked:
        return default
    if asked not in set(kind):
        raise InvalidRequest(f"The header {name} must be one of: {', '.join(kind)}.", part=name)
    return kind(asked)


def _frame(policy: EffectivePolicy, served: ServedModel, plans: Sequence[ImagePlan]) -> Frame:
    form = served.checkpoint.coordinates
    if form is CoordinateForm.NONE:
        message = "How this model writes coordinates is not documented, so they cannot be taken back to the original."
        raise InvalidRequest(message, part=COORDINATES_HEADER, rule="answer_coordinates")
    sent = [plan.original if policy.shadow else plan.target for plan in plans]
    seen = [served.family.engine_size(size, served.checkpoint) for size in sent]
    frames = {Frame.of(form, size, plan.original) for size, plan in zip(seen, plans, strict=True)}
    if len(frames) > 1:
        message = "Coordinates can be taken back only where all images of the request have one geometry."
        raise InvalidRequest(message, part=COORDINATES_HEADER, rule="answer_coordinates")
    return frames.pop()


def _member(
    served: ServedModel, call: Call, plans: Sequence[ImagePlan], frame: Frame | None, *, with_sums: bool
) -> bytes:
    images = [
        {
            "part": part.name,
            "original": [plan.original.width, plan.original.height],
            "delivered": [plan.target.width, plan.target.height],
            "scale": [round(factor, 6) for factor in plan.scale],
            "offset": [0, 0],
            "tokens": plan.after.tokens,
            "tokens_original": plan.before.tokens,
        }
        for part, plan in zip(call.images, plans, strict=False)
    ]
    form = served.checkpoint.coordinates
    told: dict[str, object] = {}
    if with_sums:
        tokens = sum(plan.after.tokens for plan in plans)
        told = {"image_tokens": tokens, "image_tokens_saved": sum(plan.before.tokens for plan in plans) - tokens}
    told["images"] = images
    if form is not CoordinateForm.NONE:
        told["coordinates"] = "original" if frame is not None else form.value
    return json.dumps(told).encode()


class AnswerEditor:
    """One response's way through. ``feed`` and ``finish`` return what may go on; nothing is lost whatever comes."""

    def __init__(self, wish: Wish, dialect: Dialect, *, streamed: bool) -> None:
        self._wish = wish
        self._dialect = dialect
        self._streamed = streamed
        self._member = wish.member
        self._buffer = bytearray()
        self._gave_up = False
        self._texts: dict[str, CoordinateText] = {}
        self._last: dict[str, tuple[bytes, Pointer]] = {}

    def feed(self, chunk: bytes) -> bytes:
        """The next bytes of the backend's response."""
        if self._gave_up:
            return chunk
        self._buffer += chunk
        out = self._events() if self._streamed else b""
        if len(self._buffer) > _MOST_BYTES:
            self._gave_up = True
            out += bytes(self._buffer)
            self._buffer.clear()
        return out

    def finish(self) -> bytes:
        """The response has come to its end."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if self._streamed:
            return self._flush(tuple(self._texts)) + rest
        return self._edited(rest, 0, len(rest))

    def _events(self) -> bytes:
        whole = bytes(self._buffer)
        out, at = [], 0
        for boundary in BOUNDARY.finditer(whole):
            out.append(self._event(whole[at : boundary.end()]))
            at = boundary.end()
        del self._buffer[:at]
        return b"".join(out)

    def _event(self, event: bytes) -> bytes:
        lines = list(DATA.finditer(event))
        if len(lines) != 1:
            return event
        if lines[0][1].strip() == b"[DONE]":
            return self._flush(tuple(self._texts)) + event
        return self._edited(event, lines[0].start(1), lines[0].end(1))

    def _edited(self, whole: bytes, start: int, stop: int) -> bytes:
        """The JSON object between two offsets with everything done to it that is to be done."""
        try:
            skeleton = cut(whole, start, stop)
        except GatewayError:  # no JSON object, or one that is no answer
            return whole
        answer = self._dialect.answer(skeleton.tree)
        operations: list[Operation] = []
        if self._wish.frame is not None:
            operations += self._mapped(whole, skeleton, answer, self._wish.frame)
        place = _usage_place(skeleton.tree) if self._wish.is_in_usage else ()
        if self._member is not None and place is not None:
            operations.append(SetMember(place, MEMBER, self._member))
            self._member = None
        before = self._before(answer)
        if not operations:
            return before + whole
        return before + _spliced(whole, Span(start, stop), skeleton, operations)

    def _before(self, answer: Answer) -> bytes:
        """What still waits in channels that end here without a text of their own to join."""
        own = {text.channel for text in answer.texts if not text.whole}
        return self._flush(tuple(name for name in self._texts if _ends(name, answer) and name not in own))

    def _mapped(self, whole: bytes, skeleton: Skeleton, answer: Answer, frame: Frame) -> list[Operation]:
        operations: list[Operation] = []
        for text in answer.texts:
            if text.is_json:
                operations += _mapped_json(whole, skeleton, text.pointer, frame)
                continue
            told = _string_at(whole, skeleton.tree, text.pointer)
            new = mapped(told, frame) if text.whole else self._piece(text, told, answer, frame)
            if not text.whole:
                self._last[text.channel] = (whole, text.pointer)
            if new != told:
                operations.append(SetString(text.pointer, json.dumps(new)[1:-1].encode()))
        return operations

    def _piece(self, text: AnswerText, told: str, answer: Answer, frame: Frame) -> str:
        channel = self._texts.setdefault(text.channel, CoordinateText(frame))
        new = channel.feed(told)
        return new + channel.finish() if _ends(text.channel, answer) else new

    def _flush(self, channels: tuple[str, ...]) -> bytes:
        """What waits in these channels, each as one more event like its last."""
        out = b""
        for name in channels:
            channel = self._texts.get(name)
            if channel is None or not channel.holds:
                continue
            event, pointer = self._last[name]
            line = next(DATA.finditer(event))
            held: list[Operation] = [SetString(pointer, json.dumps(channel.finish())[1:-1].encode())]
            if pointer[-2:] == ("function", "arguments"):  # clients join these too, and have had them
                held += [RemoveMember(pointer[:-1], "name"), RemoveMember(pointer[:-2], "id")]
            at = Span(line.start(1), line.end(1))
            out += _spliced(event, at, cut(event, at.start, at.stop), held)
        return out


def _usage_place(tree: JsonObject) -> Pointer | None:
    """Where an answer or event has its usage: at its top, or in the response or message that it holds."""
    for place in _USAGE_PLACES:
        value: Json = tree
        for step in place:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return place
    return None


def _ends(channel: str, answer: Answer) -> bool:
    return any(channel == name or channel.startswith(f"{name}.") for name in answer.ended)


def _mapped_json(whole: bytes, skeleton: Skeleton, pointer: Pointer, frame: Frame) -> list[Operation]:
    at = skeleton.locate([pointer])[pointer].value
    told = whole[at.start : at.stop].decode()
    new = mapped(told, frame)
    return [] if new == told else [SetValue(pointer, (new.encode(),))]


def _spliced(whole: bytes, at: Span, skeleton: Skeleton, operations: Sequence[Operation]) -> bytes:
    def view(start: int, stop: int) -> memoryview:
        return memoryview(whole)[start:stop]

    spliced = splice(view, at.start, at.stop, edit(skeleton, operations))
    return b"".join((whole[: at.start], *spliced.chunks, whole[at.stop :]))


def _string_at(whole: bytes, tree: Json, pointer: Pointer) -> str:
    for step in pointer:
        tree = tree[step]  # type: ignore[index] # the dialect has just been here
    if isinstance(tree, LongString):
        return str(json.loads(b'"' + whole[tree.span.start : tree.span.stop] + b'"', strict=False))
    return str(tree)


def editor_for(wish: Wish | None, dialect: Dialect, status: int, headers: HeaderList) -> AnswerEditor | None:
    """The editor for a response; ``None`` where nothing is to be done or this response cannot be read."""
    if wish is None or status != 200:
        return None
    told = {name.lower(): value.lower() for name, value in headers}
    kind = told.get("content-type", "")
    if told.get("content-encoding", "identity") != "identity":
        return None
    if kind.startswith("text/event-stream"):
        return AnswerEditor(wish, dialect, streamed=True)
    return AnswerEditor(wish, dialect, streamed=False) if kind.startswith("application/json") else None


def told_coordinates(wish: Wish | None, editor: AnswerEditor | None) -> str | None:
    """What the response's header says of its coordinates; ``None`` where nobody asked for the original's."""
    if wish is None or wish.frame is None:
        return None
    return Coordinates.MODEL if editor is None else Coordinates.ORIGINAL
