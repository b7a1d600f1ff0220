"""The ids under which engines may keep a request's images, and how they are written beside or in place of the bytes.

Decided here: which images get an id, which dialects and engines take it, and the edits. Not decided here: what an id is
made of (``media.digest``), which images go as their id alone (``bytes_once``).

* vLLM's chat: ``uuid`` beside the image, trusted blindly, hence never a client's; ``"image_url": null`` for an image
  that it has. Its Responses and Messages APIs drop the field, so there the same bytes must do (they are deterministic).
* SGLang's chat: ``content_hash`` inside ``image_url``, the SHA-256 of exactly the file sent; anything else is its 400.
  Its ``/generate``: ``mm_hashes``, which it takes for the hash of an image's features without computing that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.policy.effective import EffectivePolicy, FieldAction, ImageScope
from gateway.splice.edit import Operation, SetMember, SetValue
from gateway.types import Call, ContentDigest, EngineKind, ImagePart, ImagePlan, Prepared, SourceFacts
from gateway.types.per_request import per_request

# Whose images share an id, the file's digest, the picture made of it -> 32 hexadecimal digits.
Identify = Callable[[Sequence[str], ContentDigest, str], str]
UUID_FIELD = "uuid"
HASH_FIELD = "content_hash"


@per_request(frozen=True, slots=True)
class Marks:
    """What one attempt tells its backend of the images, by their places. ``ids`` empty: none has any.

    ``withheld`` images go as their id alone. ``priorities``: it is told the request's, too.
    """

    engine: EngineKind
    ids: tuple[str | None, ...] = ()
    withheld: frozenset[int] = frozenset()
    priorities: bool = False

    def id_of(self, place: int) -> str | None:
        """The ``uuid`` of an image for this backend."""
        return self.ids[place] if self.engine is EngineKind.VLLM and self.ids else None


def image_ids(
    identify: Identify, policy: EffectivePolicy, call: Call, facts: Sequence[SourceFacts], plans: Sequence[ImagePlan]
) -> tuple[str | None, ...]:
    """One id per image, the same on every replica; ``None`` for one that keeps its client's by policy.

    Empty where nobody takes ids, and in shadow mode, which changes nothing.
    """
    if not plans or policy.shadow:
        return ()
    if call.hashes_field is None and not any(part.takes_id for part in call.images):
        return ()
    scope = _scope(policy, call)
    keeps = policy.engine_fields.action(UUID_FIELD) is FieldAction.ALLOW
    return tuple(
        identify(scope, fact.content, plan.picture)
        if call.hashes_field is not None or (part.takes_id and not (keeps and UUID_FIELD in part.foreign_fields))
        else None
        for part, fact, plan in zip(call.images, facts, plans, strict=True)
    )


def _scope(policy: EffectivePolicy, call: Call) -> tuple[str, ...]:
    match policy.image_ids:
        case ImageScope.ALL:
            return ()
        case ImageScope.USER:
            return (policy.tenant, call.user or "")
        case _:
            return (policy.tenant,)


def hashes(call: Call, policy: EffectivePolicy, marks: Marks) -> tuple[Operation, ...]:
    """SGLang's ``mm_hashes``: of every image 64 bits that stand for its features in the prefix cache, in hex.

    They are the low half of the ids, of which 62 bits are a keyed digest's. A client's own stay where a policy allows.
    """
    field = call.hashes_field
    if field is None or marks.engine is not EngineKind.SGLANG or not marks.ids:
        return ()
    if (field,) in call.foreign_fields and policy.engine_fields.action(field) is FieldAction.ALLOW:
        return ()
    each = ",".join(f'"{(image_id or "")[-16:]}"' for image_id in marks.ids)
    return (SetMember((), field, f"[{each}]".encode()),)


def alone(part: ImagePart, marks: Marks, place: int) -> tuple[Operation, ...]:
    """The edits for an image that goes as its id: the engine wants the key there, and nothing in it."""
    return SetValue((*part.part, "image_url"), (b"null",)), _uuid(part, marks.id_of(place) or "")


def alone_in_list(part: ImagePart, marks: Marks, place: int) -> tuple[bytes, ...]:
    """A further frame or page that goes as its id."""
    kind = b"image_url" if part.pointer[-1] == "url" or part.wrap else b"input_image"
    return (b'{"type":"' + kind + b'","image_url":null' + member_behind(marks, place) + b"}",)


def beside(part: ImagePart, marks: Marks, place: int, image: Prepared | None) -> tuple[Operation, ...]:
    """The edits that name an image whose bytes go too; ``image`` is what was prepared of it, if anything was."""
    if not part.takes_id:
        return ()
    if marks.id_of(place) is not None:
        return (_uuid(part, marks.id_of(place) or ""),)
    if image is None or part.pointer[-1] != "url" or not (digest := _hash(marks, image)):
        return ()
    return (SetMember(part.pointer[:-1], HASH_FIELD, b'"' + digest + b'"'),)


def inside_url(marks: Marks, image: Prepared) -> bytes:
    """JSON behind the URL of an ``image_url`` that we write ourselves."""
    digest = _hash(marks, image)
    return b',"content_hash":"' + digest + b'"' if digest else b""


def member_behind(marks: Marks, place: int) -> bytes:
    """JSON behind the last member of a part that we write ourselves."""
    image_id = marks.id_of(place)
    return b"" if image_id is None else b',"uuid":"' + image_id.encode() + b'"'


def _hash(marks: Marks, image: Prepared) -> bytes:
    """``sha256:...`` for an engine that compares it; empty where it is not known or not asked for."""
    if marks.engine is not EngineKind.SGLANG or not marks.ids or image.file_sha256 is None:
        return b""
    return b"sha256:" + image.file_sha256.hex().encode()


def _uuid(part: ImagePart, image_id: str) -> SetMember:
    return SetMember(part.part, UUID_FIELD, b'"' + image_id.encode() + b'"')
