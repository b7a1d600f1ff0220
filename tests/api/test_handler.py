"""From an HTTP request to the right journey: paths, methods, request ids, and what the edge answers by itself."""

from __future__ import annotations

import re

import pytest

from gateway.api.handler import next_request_id
from gateway.errors import MethodNotAllowed, RouteNotFound
from tests.api.harness import Wire, post, serving


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: gateway", *headers, "", ""]).encode("latin-1")


async def test_a_chat_request_travels_with_its_head_as_it_came() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", "X-Custom:  1 ", "X-CUSTOM: 2", path="/v1/chat/completions?a=%2F&b"))
        assert (await wire.answer()).body == b"{}"
        (head,) = state.heads
        assert (head.method, head.path, head.query, head.content_length) == (
            "POST",
            "/v1/chat/completions",
            "a=%2F&b",
            2,
        )
        assert [pair for pair in head.headers if pair[0].lower() == "x-custom"] == [
            ("X-Custom", "1"),
            ("X-CUSTOM", "2"),
        ]


async def test_an_estimate_goes_its_own_way() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", path="/v1/estimate"))
        assert (await wire.answer()).status == 200
        await wire.send(post(b"{}", path="/v1/estimate?path=%2Fv1%2Fmessages"))
        assert (await wire.answer()).status == 200
        assert [head.path for head in state.heads] == ["/v1/chat/completions", "/v1/messages"]
        await wire.send(get("/v1/estimate"))
        assert (await wire.answer()).status == 405


@pytest.mark.parametrize("own", ["/v1/estimate", "/v1/prepare"])
async def test_the_body_of_a_path_that_nobody_reads_is_refused(own: str) -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", path=f"{own}?path=/v1/nobody"))
        await wire.answer()
        ((_, error),) = state.refused
        assert (error.message, error.part) == ("The gateway reads no '/v1/nobody'.", "path")


@pytest.mark.parametrize("given", ["abc-123", "x" * 128, "!#~"])
async def test_a_clients_request_id_is_kept(given: str) -> None:
    async with serving() as (_, wire):
        await wire.send(post(b"{}", f"X-Request-Id: {given}"))
        assert (await wire.answer()).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "t\xe4g"])
async def test_an_unusable_one_is_replaced(given: str) -> None:
    async with serving() as (_, wire):
        await wire.send(post(b"{}", f"X-Request-Id: {given}"))
        assert re.fullmatch(r"[0-9a-f]{32}", (await wire.answer()).headers["x-request-id"])


async def test_the_trace_is_read() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", f"traceparent: 00-{'ab' * 16}-{'cd' * 8}-01"))
        await wire.answer()
        await wire.send(post(b"{}", "traceparent: nonsense"))
        await wire.answer()
        assert [head.trace_id for head in state.heads] == ["ab" * 16, None]


@pytest.mark.parametrize("path", ["/", "/pause", "/metrics", "/v1/../v1/chat/completions", "/v1/chat%2Fcompletions"])
async def test_unknown_paths_are_404_and_reach_nobody(path: str) -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", path=path))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (404, "route_not_found")
        ((name, error),) = state.refused
        assert (name, type(error)) == ("unknown", RouteNotFound)
        assert state.heads == []


async def test_a_long_path_is_cut_in_the_answer() -> None:
    async with serving() as (_, wire):
        await wire.send(get("/" + "x" * 4000))
        assert len((await wire.answer()).json()["error"]["message"]) < 300


async def test_the_wrong_method_is_405_and_says_which() -> None:
    async with serving() as (state, wire):
        await wire.send(get("/v1/chat/completions"))
        answer = await wire.answer()
        assert answer.status == 405
        assert "POST" in answer.json()["error"]["message"]
        assert answer.headers["allow"] == "POST"
        assert isinstance(state.refused[0][1], MethodNotAllowed)


async def test_the_wrong_method_of_prepare_is_told_of_prepare() -> None:
    async with serving() as (_, wire):
        await wire.send(get("/v1/prepare?path=/v1/messages"))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["message"]) == (405, "/v1/prepare takes POST.")


async def test_an_error_has_the_envelope_of_its_paths_api() -> None:
    async with serving() as (_, wire):
        await wire.send(get("/v1/messages/count_tokens", "X-Request-Id: r9"))
        answer = await wire.answer()
        assert answer.status == 405
        assert answer.json() == {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "/v1/messages/count_tokens takes POST."},
            "request_id": "r9",
        }


async def test_other_inference_is_ferried() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"body", path="/v1/audio/transcriptions"))
        assert (await wire.answer()).body == b"body"
        assert state.ferried == ["pass_through"]


async def test_the_models() -> None:
    async with serving() as (_, wire):
        await wire.send(get("/v1/models", "X-Request-Id: r9"))
        answer = await wire.answer()
        assert (answer.status, answer.json(), answer.headers["x-request-id"]) == (
            200,
            {"object": "list", "data": []},
            "r9",
        )
        await wire.send(get("/v1/models", method="HEAD"))
        answer = await wire.answer(has_body=False)
        assert (answer.status, int(answer.headers["content-length"])) == (200, 27)
        await wire.send(get("/v1/models"))
        assert (await wire.answer()).status == 200, "the connection lives on"


@pytest.mark.parametrize(
    ("ready", "draining", "status"), [(True, False, 200), (False, False, 503), (True, True, 503), (False, True, 503)]
)
async def test_health_is_readiness(ready: bool, draining: bool, status: int) -> None:
    async with serving(ready=ready, draining=draining) as (_, wire):
        await wire.send(get("/health"))
        answer = await wire.answer()
        assert (answer.status, answer.body) == (status, b"")


async def test_two_requests_on_one_connection_are_two_exchanges() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"one") + post(b"two"))
        assert [(await wire.answer()).body, (await wire.answer()).body] == [b"one", b"two"]
        first, second = state.heads
        assert first.request_id != second.request_id


async def test_while_draining_every_answer_closes_its_connection() -> None:
    async with serving(draining=True) as (state, wire):
        await wire.send(post(b"x"))
        assert (await wire.answer()).headers["connection"] == "close"
        assert await wire.rest() == b""
        other = await Wire.to(state.port)
        await other.send(get("/nowhere"))
        assert (await other.answer()).headers["connection"] == "close"
        other.close()


def test_request_ids_are_128_bits_that_tell_nothing_of_the_next() -> None:
    ids = [next_request_id() for _ in range(600)]  # more than one batch
    assert len(set(ids)) == 600
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)
    assert all(len(set(column)) > 1 for column in zip(*ids, strict=True))
