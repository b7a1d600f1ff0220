"""How many images one request may hold: every role, every turn, repetitions included."""

from __future__ import annotations

from gateway.errors import TooManyImages
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount
from gateway.types import Call


def _declared(values: RuleValues, call: Call) -> TooManyImages | None:
    limit, actual = values.max_images, len(call.images)
    if limit is None or actual <= limit:
        return None
    first_beyond = call.images[limit].name
    return TooManyImages(
        f"The request has {actual} images, the limit is {limit}.", part=first_beyond, rule="max_images"
    )


def _measured(values: RuleValues, measured: Measured) -> TooManyImages | None:
    """Again once frames and pages are known: each that a policy takes is an image. Without them it is said already."""
    limit, actual = values.max_images, len(measured.images)
    if limit is None or actual <= limit or len({image.name for image in measured.images}) > limit:
        return None
    return TooManyImages(
        f"The request has {actual} images, frames and pages included; the limit is {limit}.",
        part=measured.images[limit].name,
        rule="max_images",
    )


RULE = Rule(
    key="max_images",
    summary="Images per request, counted over all roles and turns, repetitions, frames and pages included.",
    kind=Amount("max_images", 0, 10_000, word="none"),
    default=100,
    declared=_declared,
    measured=_measured,
    of_images=True,
)
