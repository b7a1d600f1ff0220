"""Small calls, images, estimates and policies, so that a test writes only what it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.config.policies import parse_yaml
from gateway.policy.effective import EffectivePolicy
from gateway.policy.node import Node, Problem
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet, build_policy_set, builtin_policies
from gateway.policy.resolve import resolve
from gateway.policy.rule import MeasuredClip, MeasuredImage
from gateway.policy.schema import Document, parse_document
from gateway.types import (
    Call,
    ImageFormat,
    ImagePart,
    LongString,
    MediumKind,
    OtherMedium,
    Size,
    Span,
    TokenEstimate,
)

BUILTIN = resolve(builtin_policies(), tenant=DEFAULT_TENANT, header_task=None, model=None, body_task=None)


def node(text: str) -> Node:
    return parse_yaml(text, "test.yaml")


def document(text: str, file: str = "policies/acme.yaml") -> Document:
    found, problems = parse_document(node(text), file)
    assert not problems, "\n".join(map(str, problems))
    return found


def problems_of(text: str, file: str = "policies/acme.yaml") -> list[str]:
    return [str(problem) for problem in parse_document(node(text), file)[1]]


def policy_set(**texts: str) -> PolicySet:
    """A set made of files given by name and content."""
    policies, problems = build_policy_set([document(text, f"policies/{name}.yaml") for name, text in texts.items()])
    assert not problems, "\n".join(map(str, problems))
    return policies


def set_problems(**texts: str) -> tuple[Problem, ...]:
    return build_policy_set([document(text, f"policies/{name}.yaml") for name, text in texts.items()])[1]


def policy(**values: Any) -> EffectivePolicy:
    """The built-in policy with some values changed."""
    return replace(BUILTIN, **values)


def part(index: int = 0, source: str | LongString = "data:image/png;base64,AAAA") -> ImagePart:
    pointer = ("messages", 0, "content", index, "image_url", "url")
    return ImagePart(pointer, pointer[:4], source)


def long_source(byte_count: int) -> LongString:
    return LongString(Span(100, 100 + byte_count), has_escapes=False)


def medium(kind: MediumKind, index: int = 0, source: str | LongString = "data:video/mp4;base64,AAAA") -> OtherMedium:
    pointer = ("messages", 0, "content", index, "video_url", "url")
    return OtherMedium(f"messages.0.content.{index}.video_url", True, kind, pointer, source)


def clip(kind: MediumKind = MediumKind.VIDEO, **values: Any) -> MeasuredClip:
    """Four seconds, 100 kB; eight frames of 900 tokens together."""
    known: dict[str, Any] = {"byte_count": 100_000, "duration_s": 4.0, "frames": 8, "tokens": 900}
    return MeasuredClip("messages.0.content.0.video_url", kind, **(known | values))


def call_of(*media: OtherMedium) -> Call:
    return replace(call(), other_media=media)


def call(*images: ImagePart, output_limit_tokens: int | None = None, choices: int = 1) -> Call:
    return Call(
        model="m",
        stream=False,
        wants_usage=False,
        output_limit_tokens=output_limit_tokens,
        images=images,
        text_bytes=10,
        message_count=1,
        choices=choices,
    )


def image(
    width: int = 448,
    height: int = 448,
    kind: ImageFormat = ImageFormat.JPEG,
    *,
    byte_count: int = 50_000,
    frames: int = 1,
    cap_pixels: int | None = None,
) -> MeasuredImage:
    return MeasuredImage("messages.0.content.0.image_url", kind, byte_count, Size(width, height), frames, cap_pixels)


def estimate(text: int = 20, image_tokens: int = 256, output: int = 16, *, exact: bool = False) -> TokenEstimate:
    return TokenEstimate(
        text_tokens=text,
        text_lower_bound=text if exact else text // 2,
        text_upper_bound=text if exact else text * 2,
        image_tokens=image_tokens,
        image_overhead_tokens=2 if image_tokens else 0,
        output_tokens=output,
        exact=exact,
    )
