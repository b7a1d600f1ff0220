"""What leaves: which headers and fields a backend gets, and which headers a client gets back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from gateway.policy.effective import CacheSalt, EffectivePolicy, EngineFields, FieldAction, Urgency
from gateway.record import ExchangeRecord, RequestHead, TraceContext
from gateway.routing.ask import Decision
from gateway.splice.edit import (
    Operation,
    RemoveMember,
    SetMember,
    SetString,
    SetValue,
    Wrap,
    edit,
    rename_model,
    splice,
)
from gateway.splice.skeleton import cut
from gateway.stages.identities import Marks
from gateway.stages.outgoing import MAX_DIGESTS, edits_of, forward_headers, response_headers, server_timing
from gateway.types import (
    BackendName,
    Call,
    EngineKind,
    HeaderList,
    ImageForm,
    ImageFormat,
    ImagePart,
    Prepared,
    RequestId,
    Size,
    TokenEstimate,
)
from tests.policy.examples import call, part, policy

DECISION = Decision(BackendName("gpu-1"), "http://10.0.0.7:8000", "holds_images")
MADE = Prepared(b"data:image/png;base64,AA==", Size(1, 1), ImageFormat.PNG, 1)


def head(*headers: tuple[str, str]) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", "", headers, None, RequestId("good-id"))


def record(**facts: Any) -> ExchangeRecord:
    return ExchangeRecord(RequestId("good-id"), "openai_chat", "/", 0.0, **facts)


def test_the_clients_headers_go_on_in_order_and_spelling() -> None:
    sent = (("Accept", "a"), ("X-Custom", "1"), ("x-custom", "2"), ("traceparent", "t"), ("X-Request-ID", "good-id"))
    assert forward_headers(head(*sent), keep_authorization=True) == list(sent)


def test_our_own_headers_stop_here() -> None:
    assert forward_headers(head(("X-VLMGW-Task", "ocr"), ("x-vlmgw-anything", "y")), keep_authorization=True) == [
        ("x-request-id", "good-id")
    ]


@pytest.mark.parametrize("name", ["Authorization", "authorization", "X-API-Key"])
def test_credentials_go_on_only_while_nobody_has_keys_here(name: str) -> None:
    assert (name, "secret") in forward_headers(head((name, "secret")), keep_authorization=True)
    assert "secret" not in dict(forward_headers(head((name, "secret")), keep_authorization=False)).values()


def test_an_unusable_request_id_is_replaced_and_a_second_one_dropped() -> None:
    ids = (("x-request-id", "bad id\t"), ("X-Request-Id", "other"))
    assert forward_headers(head(*ids), keep_authorization=True) == [("x-request-id", "good-id")]
    assert forward_headers(head(("x-request-id", "good-id"), ids[0]), keep_authorization=True) == [
        ("x-request-id", "good-id")
    ]


def edits(
    asked: Call, effective: EffectivePolicy, engine: EngineKind = EngineKind.VLLM, *made: tuple[ImagePart, Prepared]
) -> list[Operation]:
    return edits_of(asked, effective, Marks(engine), made, lambda tenant, user: f"{tenant}/{user}", record())


def test_nothing_to_change_is_no_edit() -> None:
    assert edits(replace(call(part()), model="m"), policy(model="m")) == []
    assert edits(replace(call(), model="m"), policy(model=None)) == []


def test_an_alias_is_renamed() -> None:
    assert edits(call(), policy(model="real")) == [rename_model("real")]


@pytest.mark.parametrize(
    ("engine", "numbers"),
    [(EngineKind.VLLM, (-1, 0, 1)), (EngineKind.SGLANG, (1, 0, -1)), (EngineKind.GENERIC, (None, None, None))],
)
def test_a_backend_that_schedules_by_priority_is_told_it(engine: EngineKind, numbers: tuple[int | None, ...]) -> None:
    """Each engine in its own order, and no other backend at all."""
    for urgency, number in zip((Urgency.HIGH, Urgency.NORMAL, Urgency.LOW), numbers, strict=True):
        effective = replace(policy(model=None), priority=urgency)
        marks = Marks(engine, priorities=True)
        found = edits_of(call(), effective, marks, (), lambda *_: "", record())
        assert found == ([] if number is None else [SetMember((), "priority", str(number).encode())])
        assert edits_of(call(), effective, Marks(engine), (), lambda *_: "", record()) == []


def test_a_client_s_priority_stands_where_the_policy_lets_it() -> None:
    asked = replace(call(), foreign_fields=(("priority",),))
    marks = Marks(EngineKind.VLLM, priorities=True)
    allowed = replace(policy(model=None), engine_fields=EngineFields(FieldAction.ALLOW))
    assert edits_of(asked, allowed, marks, (), lambda *_: "", record()) == []
    stripped = edits_of(asked, policy(model=None), marks, (), lambda *_: "", record())
    assert stripped[-1] == SetMember((), "priority", b"0")


def test_engine_fields_are_stripped_and_noted_or_allowed() -> None:
    asked = replace(call(), foreign_fields=(("priority",), ("a", "b")))
    kept = record()
    found = edits_of(asked, policy(), Marks(EngineKind.GENERIC), (), lambda *_: "", kept)
    assert found == [RemoveMember((), "priority"), RemoveMember(("a",), "b")]
    assert kept.stripped_fields == ("priority", "a.b")
    assert edits(asked, policy(engine_fields=EngineFields(FieldAction.ALLOW))) == []
    by_name = EngineFields(FieldAction.STRIP, (("priority", FieldAction.ALLOW),))
    assert edits(asked, policy(engine_fields=by_name)) == [RemoveMember(("a",), "b")]


@pytest.mark.parametrize(
    ("salt", "expected"), [(CacheSalt.TENANT, b'"default/None"'), (CacheSalt.USER, b'"default/u1"')]
)
def test_a_cache_salt_per_tenant_or_user(salt: CacheSalt, expected: bytes) -> None:
    asked = replace(call(), user="u1")
    assert edits(asked, policy(cache_salt=salt)) == [SetMember((), "cache_salt", expected)]
    assert edits(asked, policy(cache_salt=salt), EngineKind.GENERIC) == []


def test_each_image_is_replaced_in_the_form_engines_take() -> None:
    plain, bare = part(0), replace(part(1), wrap=True)
    assert edits(call(plain, bare), policy()) == [Wrap(bare.pointer, b'{"url":', b"}")]
    assert edits(call(plain, bare), policy(), EngineKind.VLLM, (plain, MADE), (bare, MADE)) == [
        SetString(plain.pointer, MADE.data_url),
        SetValue(bare.pointer, (b'{"url":"', MADE.data_url, b'"}')),
    ]


def written(body: Any, *made: tuple[ImagePart, Prepared]) -> Any:
    """The body as it leaves, by the operations that the journey would get."""
    data = json.dumps(body).encode()
    asked = call(*(each for each, _ in made))
    operations = edits(asked, policy(model=None), EngineKind.VLLM, *made)
    spliced = splice(
        lambda start, stop: memoryview(data)[start:stop], 0, len(data), edit(cut(data, 0, len(data)), operations)
    )
    return json.loads(b"".join(bytes(chunk) for chunk in spliced.chunks))


@pytest.mark.parametrize("data", ["iVBORw0KGgo=", "A" * 4_000])
@pytest.mark.parametrize("declared", [{"media_type": "image/gif"}, {}])
def test_bare_base64_stays_bare_and_gets_its_true_type(data: str, declared: dict[str, str]) -> None:
    source = {**declared, "type": "base64", "data": data, "more": 1}
    body = {"messages": [{"content": [{"type": "image", "source": source, "cache_control": {}}]}]}
    at = ("messages", 0, "content", 0)
    image = ImagePart((*at, "source", "data"), at, data, form=ImageForm.BASE64)
    (block,) = written(body, (image, MADE))["messages"][0]["content"]
    assert block["cache_control"] == {}
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": "AA==", "more": 1}


@pytest.mark.parametrize("url", ["https://example.com/a.png", "data:image/png;base64," + "A" * 4_000])
def test_an_address_gives_way_to_a_base64_source(url: str) -> None:
    body = {"messages": [{"content": [{"type": "image", "source": {"type": "url", "url": url}, "cache_control": {}}]}]}
    at = ("messages", 0, "content", 0)
    image = ImagePart((*at, "source", "url"), at, url, form=ImageForm.BASE64_SOURCE)
    (block,) = written(body, (image, MADE))["messages"][0]["content"]
    assert block["cache_control"] == {}
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": "AA=="}


def test_server_timing_has_every_stage_once() -> None:
    assert server_timing([("check", 0.001), ("plan", 0.25), ("check", 0.002)]) == "check;dur=3.0, plan;dur=250.0"
    assert server_timing([]) == ""


def test_server_timing_is_cut_to_hundredths_however_long_a_stage_took() -> None:
    taken = [("a", 0.0), ("b", 0.000019), ("c", 0.0012345), ("d", 0.0099999), ("e", 0.0100001), ("f", 12.3456789)]
    assert server_timing(taken) == "a;dur=0.0, b;dur=0.01, c;dur=1.23, d;dur=9.99, e;dur=10.0, f;dur=12345.67"


def described(known: ExchangeRecord, *backend: tuple[str, str]) -> HeaderList:
    return response_headers(known, DECISION, backend)


def test_the_backends_headers_come_first_without_what_is_ours() -> None:
    given = (("Content-Type", "a/b"), ("X-Request-Id", "theirs"), ("server-timing", "t"), ("X-VLMGW-Backend", "faked"))
    found = described(record(), *given)
    assert found[0] == ("Content-Type", "a/b")
    names = [name.lower() for name, _ in found]
    assert len(names) == len(set(names))
    assert dict(found)["x-request-id"] == "good-id"
    assert dict(found)["x-vlmgw-backend"] == "gpu-1"
    assert "10.0.0.7" not in str(found)


def test_how_a_tenant_stands_replaces_what_a_backend_says_of_its_own_limits() -> None:
    ours = [("x-ratelimit-remaining-images", "7")]
    backend = (("X-RateLimit-Remaining-Images", "1"), ("x-ratelimit-remaining-foo", "2"))
    told = response_headers(record(rate_headers=ours), DECISION, backend)
    assert told[:2] == [("x-ratelimit-remaining-foo", "2"), *ours]
    assert response_headers(record(), DECISION, backend)[:2] == list(backend)


def test_a_text_answer_says_nothing_of_images() -> None:
    found = dict(described(record(estimate=TokenEstimate(20, 10, 40, 0, 0, 9))))
    assert found["x-vlmgw-prompt-tokens-estimate"] == "20"
    assert not [name for name in found if "image" in name or "geometry" in name]


def test_what_was_done_to_images_is_disclosed() -> None:
    known = record(
        estimate=TokenEstimate(20, 10, 40, 256, 2, 9), images_passed=1, images_shrunk=2, image_tokens_original=900,
        geometry=["64x64", "4032x3024 1280x960"] * 40, image_digests=["ab" * 16] * 80, stages=[("read", 0.001)],
    )  # fmt: skip
    found = dict(described(known))
    assert (found["x-vlmgw-image-tokens"], found["x-vlmgw-image-tokens-original"]) == ("256", "900")
    assert found["x-vlmgw-images"] == "passed=1, shrunk=2, recoded=0"
    assert found["x-vlmgw-prompt-tokens-estimate"] == "278"
    assert found["Server-Timing"] == "read;dur=1.0"
    assert len(found["x-vlmgw-geometry"].split(", ")) == MAX_DIGESTS
    assert all(len(value) < 4096 for value in found.values())
    assert re.fullmatch(r"([0-9a-f]{32},)*[0-9a-f]{32}", found["x-vlmgw-image-digests"])


TRACE = TraceContext("ab" * 16, "1" * 16, "2" * 16, "3" * 16, sampled=True)


def test_where_traces_are_made_the_backends_parent_is_our_call() -> None:
    sent = (("TraceParent", "00-x"), ("tracestate", "a=1"), ("x-request-id", "good-id"))
    given = replace(head(*sent), trace=TRACE)
    assert forward_headers(given, keep_authorization=True) == [
        ("tracestate", "a=1"), ("x-request-id", "good-id"), ("traceparent", f"00-{'ab' * 16}-{'2' * 16}-01"),
    ]  # fmt: skip
    begun = replace(given, trace=replace(TRACE, parent_id=None, sampled=False))
    assert dict(forward_headers(begun, keep_authorization=True)) == {
        "x-request-id": "good-id", "traceparent": f"00-{'ab' * 16}-{'2' * 16}-00",
    }  # fmt: skip
