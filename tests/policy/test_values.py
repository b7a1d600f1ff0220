from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.effective import CacheSalt
from gateway.policy.node import ScalarNode
from gateway.policy.values import (
    BYTE_UNITS,
    PIXEL_UNITS,
    Aliases,
    Amount,
    BadValue,
    Choice,
    ChoiceList,
    Colour,
    Hosts,
    Kind,
    Models,
    Name,
    Seconds,
)
from gateway.types import ImageFormat
from tests.policy.examples import node

PIXELS = Amount("max_pixels", 10, 10**9, PIXEL_UNITS, products=True, word="engine")
BYTES = Amount("max_image_bytes", 1, 2**30, BYTE_UNITS)
COUNT = Amount("max_images", 0, 100, word="none")
PLAIN = Amount("jpeg_quality", 50, 100)
FORMATS = ChoiceList(Choice(ImageFormat, (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.GIF)))
HASH = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (PIXELS, "1003520", 1_003_520),
        (PIXELS, "64_000_000", 64_000_000),
        (PIXELS, "1280x32x32", 1_310_720),
        (PIXELS, "64MP", 64_000_000),
        (PIXELS, "1.5 MP", 1_500_000),
        (PIXELS, "engine", None),
        (BYTES, "20MiB", 20 * 2**20),
        (BYTES, "20MB", 20_000_000),
        (BYTES, "0.5kB", 500),
        (COUNT, "0", 0),
        (COUNT, "none", None),
        (PLAIN, "95", 95),
        (Seconds(60), "10", 10.0),
        (Seconds(60), "0.25", 0.25),
        (Choice(CacheSalt), "tenant", CacheSalt.TENANT),
        (FORMATS, "[gif, jpeg]", (ImageFormat.JPEG, ImageFormat.GIF)),
        (Colour(), "[0, 128, 255]", (0, 128, 255)),
        (Hosts(), "any", None),
        (Hosts(), "none", ()),
        (Models(), "any", None),
        (Models(), '["b*", a, a]', ("a", "b*")),
        (Hosts(), '["*.example.com", a.example]', ("*.example.com", "a.example")),
        (Name(), "org_1", "org_1"),
        (Aliases(), "{fast: Qwen/Qwen3-VL-8B, 'fast@ocr': b}", {"fast": "Qwen/Qwen3-VL-8B", "fast@ocr": "b"}),
    ],
)
def test_a_value_is_read(kind: Kind, text: str, value: object) -> None:
    assert kind.parse(node(text)) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (PIXELS, "5", "5 is out of range: max_pixels is 10 to 1000000000"),
        (PIXELS, "-5", "out of range"),
        (PIXELS, "12Mp", "unit 'Mp' is not one of MP; did you mean MP?"),
        (PIXELS, "engin", "did you mean engine?"),
        (PIXELS, "1.0000001MP", "is not a whole number"),
        (PIXELS, "true", "found the boolean true"),
        (PIXELS, "1e6", "found '1e6'"),
        (PIXELS, "1.5", "found the number 1.5"),
        (PIXELS, "[1]", "found a list"),
        (BYTES, "20Mib", "did you mean MiB?"),
        (BYTES, "twenty", "expected a whole number or one with a unit (KiB"),
        (COUNT, "", "write none for no limit"),
        (COUNT, "8 images", "takes a plain number"),
        (PLAIN, "", "expected a whole number, found nothing"),
        (Seconds(60), "10s", "a number of seconds without a unit, found '10s'"),
        (Seconds(60), "61", "out of range: 0 to 60 seconds"),
        (Seconds(60), ".nan", "out of range"),
        (Seconds(60), "true", "found the boolean true"),
        (Seconds(60), "[1]", "found a list"),
        (Choice(CacheSalt), "tenat", "expected one of none, tenant, user, found 'tenat'; did you mean tenant?"),
        (Choice(CacheSalt), "{}", "found a mapping"),
        (FORMATS, "jpeg", "expected a list of jpeg, png, gif"),
        (FORMATS, "[]", "expected a list"),
        (FORMATS, "[avif]", "found 'avif'"),
        (FORMATS, "[gif, gif]", "gif is listed twice"),
        (Colour(), "[1, 2]", "three whole numbers"),
        (Colour(), "[1, 2, 256]", "found the number 256"),
        (Colour(), "[1, 2, true]", "found the boolean true"),
        (Colour(), "[1, 2, [3]]", "found a list"),
        (Colour(), "white", "found 'white'"),
        (Hosts(), "all", "any, none or a list"),
        (Hosts(), "[]", "any, none or a list"),
        (Models(), "[]", "any or a list"),
        (Models(), "none", "any or a list"),
        (Models(), "[[a], '']", "found a list"),
        (Hosts(), "['https://a.example/']", "without scheme, port or path"),
        (Hosts(), "['a.*.example']", "* only in front"),
        (Hosts(), "[[a]]", "found a list"),
        (Name(), "a b", "a name of letters"),
        (Name(), "[a]", "a name of letters"),
        (Aliases(), "[a]", "a mapping from alias"),
        (Aliases(), "{a: 1}", "expected the name of a served model, found the number 1"),
        (Aliases(), "{a: [b]}", "found a list"),
        (Aliases(), "{a: b, a: c}", "defined twice"),
    ],
)
def test_a_mistake_is_named(kind: Kind, text: str, words: str) -> None:
    with pytest.raises(BadValue) as caught:
        kind.parse(node(text))
    assert words in str(caught.value)


def test_every_mistake_of_a_list_is_reported_with_its_place() -> None:
    with pytest.raises(BadValue) as caught:
        FORMATS.parse(node("[jpg, png, bpm]"))
    assert [mistake.part for mistake in caught.value.mistakes] == ["0", "2"]


def test_the_line_is_that_of_the_item() -> None:
    with pytest.raises(BadValue) as caught:
        FORMATS.parse(node("- jpeg\n- jpg\n"))
    assert [mistake.line for mistake in caught.value.mistakes] == [2]


@given(st.integers(min_value=1, max_value=1023), st.sampled_from(sorted(BYTE_UNITS)))
def test_a_unit_multiplies(number: int, unit: str) -> None:
    assert Amount("x", 1, 2**40, BYTE_UNITS).parse(ScalarNode(1, f"{number}{unit}")) == number * BYTE_UNITS[unit]


@pytest.mark.parametrize(
    "kind", [PIXELS, BYTES, COUNT, PLAIN, Seconds(1), FORMATS, Colour(), Hosts(), Models(), Name(), Aliases()]
)
def test_every_kind_describes_itself(kind: Kind) -> None:
    assert kind.schema()
