"""The promise of exact counts: what the gateway says before, the engine says after, for every shape of picture."""

from __future__ import annotations

import httpx
import pytest

from tests.engine.chat import WRAPPER_TOKENS, Answer, ask, body, content, text_tokens
from tests.engine.conftest import CAPPED, POLICY_CAP_PIXELS, Site
from tests.engine.pictures import drawn, jpeg, png, webp, with_orientation
from tests.engine.vllm import wait_until

# (width, height) as people see it. Below one token, around rounding borders of 28 and 32, extreme, ordinary, large.
SIZES = [
    (1, 1), (2, 3), (26, 28), (22, 3), (28, 28), (31, 33), (32, 32), (42, 70), (48, 80), (332, 27), (200, 1), (1, 200),
    (5, 1000), (2520, 13), (41, 1999), (224, 224), (255, 257), (256, 256), (333, 500), (448, 448), (640, 480),
    (799, 601), (896, 896), (1001, 997), (1280, 720), (720, 1280), (1600, 90), (1500, 1000), (1170, 1600), (3001, 301),
]  # fmt: skip
# Turned by EXIF: the raster is stored lying, the count is that of the picture standing.
TURNED = {(333, 500): 6, (720, 1280): 8, (1170, 1600): 5}
PHONE = (4000, 3000)


def name_of(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def file_of(size: tuple[int, int]) -> bytes:
    """A picture of this size; the encodings take turns."""
    width, height = size
    if size in TURNED:
        return with_orientation(jpeg(drawn(height, width)), TURNED[size])
    encode = (jpeg, png, webp)[(width + height) % 3]
    return encode(drawn(width, height))


def check_counts(site: Site, answer: Answer, request: dict[str, object], images: int = 1) -> None:
    """The gateway's image tokens are the engine's, and text and wrappers make up the rest of the prompt."""
    model = str(request["model"])
    assert answer.estimated_image_tokens == answer.image_tokens
    text = text_tokens(site.engines[model].url, request["messages"], model)  # type: ignore[arg-type]
    assert answer.image_tokens + WRAPPER_TOKENS * images + text == answer.prompt_tokens


def test_thirty_sizes() -> None:
    assert len(set(SIZES)) == 30


@pytest.mark.parametrize("size", SIZES, ids=name_of)
def test_as_the_engine_would_see_it(site: Site, model: str, size: tuple[int, int]) -> None:
    """Without a cap no picture loses a token, and the count is what the engine makes of the original by itself."""
    request = body(model, file_of(size))
    answer = ask(site.gateway.url, request)
    check_counts(site, answer, request)
    assert answer.original_image_tokens == answer.image_tokens
    assert ask(site.engines[model].url, request).image_tokens == answer.image_tokens


@pytest.mark.parametrize("size", [*SIZES, PHONE], ids=name_of)
def test_shrunk_by_a_policy(site: Site, model: str, size: tuple[int, int]) -> None:
    request = body(model, file_of(size))
    answer = ask(site.gateway.url, request, task="classify")
    check_counts(site, answer, request)
    if size[0] * size[1] > POLICY_CAP_PIXELS:
        assert answer.images == "passed=0, shrunk=1, recoded=0"
        assert answer.image_tokens < answer.original_image_tokens
    else:
        assert answer.image_tokens == answer.original_image_tokens


@pytest.mark.parametrize("size", [*SIZES, PHONE], ids=name_of)
def test_shrunk_to_the_engines_cap(site: Site, model: str, size: tuple[int, int]) -> None:
    """The engine has a cap that the gateway knows: the picture arrives at the size the engine would make."""
    request = body(model + CAPPED, file_of(size))
    answer = ask(site.gateway.url, request)
    check_counts(site, answer, request)
    assert ask(site.engines[model + CAPPED].url, request).image_tokens == answer.image_tokens


@pytest.mark.parametrize("task", ["chat", "classify"])
def test_several_images_in_several_messages(site: Site, model: str, task: str) -> None:
    files = [file_of(size) for size in ((640, 480), (1001, 997), (333, 500), (26, 28), (1600, 90))]
    request = body(model) | {
        "messages": [
            {"role": "system", "content": "Answer in one word."},
            {"role": "user", "content": content(files[0], files[1])},
            {"role": "assistant", "content": "Gradients."},
            {
                "role": "user",
                "content": content(files[2], text="And this?") + content(files[3], files[4], text="Or these?"),
            },
        ]
    }
    answer = ask(site.gateway.url, request, task=task)
    check_counts(site, answer, request, images=len(files))


def test_one_picture_twice(site: Site, model: str) -> None:
    file = file_of((799, 601))
    request = body(model, file, file)
    answer = ask(site.gateway.url, request)
    check_counts(site, answer, request, images=2)


def test_a_field_that_would_change_the_count_is_taken_out(site: Site, model: str) -> None:
    """The engine refuses it here; one that trusts its clients would obey and count otherwise."""
    plain = body(model, file_of((799, 601)))
    answer = ask(site.gateway.url, plain | {"mm_processor_kwargs": {"max_pixels": 200_000}})
    check_counts(site, answer, plain)


def test_one_identity_for_two_pictures_misleads_nobody(site: Site, model: str) -> None:
    """A client's uuid is the engine's cache key, trusted blindly: the second picture would be answered as the first."""
    for size in ((640, 480), (256, 256)):
        request = body(model, file_of(size))
        request["messages"][0]["content"][0]["uuid"] = "mine"
        check_counts(site, ask(site.gateway.url, request), request)


def gateway_metric(site: Site, name: str) -> float:
    """The sum of a metric's samples; those that nothing happened to are not there."""
    lines = httpx.get(f"{site.gateway.admin_url}/metrics", timeout=20, trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{"))


def test_the_gateway_found_no_drift_itself(site: Site, model: str) -> None:
    """It compares every answer's usage with its estimate, those of all tests before this one too."""
    compared = gateway_metric(site, "vlmgw_estimate_ratio_count")
    ask(site.gateway.url, body(model, file_of((448, 448))))
    wait_until(lambda: gateway_metric(site, "vlmgw_estimate_ratio_count") > compared, 10, "the answer is compared")
    assert gateway_metric(site, "vlmgw_image_token_drift_total") == 0
