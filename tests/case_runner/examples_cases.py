"""Examples for the keys of a whole case: answers, surroundings, operations, relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.case_runner.example import Example
from tests.case_runner.metrics import read_scrape
from tests.case_runner.observation import Memory, Scope
from tests.case_runner.specimens import call, chat, data_url, exchange, origin_call, refused, response, scope

SERVED, LOST = exchange(response(), call()), exchange(response(502))
IMAGE = call(chat(data_url(224, 112)))
TOKENS = ("x-vlmgw-image-tokens", "32")


def _salted(*salts: str | None) -> Any:
    calls = [call(chat(**({} if salt is None else {"cache_salt": salt}))) for salt in salts]
    return scope(*(exchange(response(), each) for each in calls))


def _digested(*digests: str) -> Any:
    return scope(*(exchange(response(200, b"", ("x-vlmgw-image-digests", each))) for each in digests))


def _left(closed_at_s: float | None) -> Any:
    got = exchange(response(took_s=0.0), call(closed_at_s=closed_at_s))
    got.left_at_s = 100.0
    return scope(got)


def _interim(*statuses: int, after_s: float = 0.0) -> Any:
    got = exchange()
    got.response.interim = [(status, 100.0 + after_s) for status in statuses]
    return scope(got)


def _closing(closed: bool) -> Any:
    got = exchange()
    got.response.closed_afterwards = closed
    return scope(got)


REQUESTS = 'vlmgw_requests_total{{dialect="openai_chat",outcome="{}"}} {}'


def _counted(outcome: str, after: int) -> Any:
    before = read_scrape(REQUESTS.format(outcome, 1))
    return scope(exchange(), before=before, after=read_scrape(REQUESTS.format(outcome, after)))


def _reserved(tokens: int) -> Any:
    return scope(exchange(), after=read_scrape(f'vlmgw_budget_reserved_tokens{{tenant="default"}} {tokens}'))


def _scrapes(*texts: str, names: tuple[str, ...] = ("before", "after"), **seen: Any) -> Any:
    scrapes = [(name, read_scrape(text)) for name, text in zip(names, texts, strict=False)]
    return scope(exchange(), scrapes=scrapes, **seen)


def _sends(*statuses: int, role: str = "send", file: str = "", **seen: Any) -> Any:
    made = [exchange(response(status), role=role) for status in statuses]
    for each in made:
        each.request_file = file
    return scope(*made, **seen)


def _slow(*took_s: float) -> Any:
    made = [exchange(response(took_s=each), role="send") for each in took_s]
    return scope(*made, baseline_ms=[10.0])


def _streamed(body: bytes) -> Any:
    return scope(exchange(response(200, body), call(), role="stream"), exited_at_s=101.0)


def _memory(resident_mb: int, files: int) -> Any:
    return scope(exchange(), memory=[Memory("warm", 0, 10), Memory("end", resident_mb << 20, files)])


WHOLE_EXAMPLES = {
    "status": Example([200, 400], scope(SERVED), scope(LOST)),
    "backend_calls": Example(1, scope(SERVED), scope(LOST)),
    "backend_calls_total": Example(1, scope(SERVED), scope(SERVED, SERVED)),
    "backend": Example({"image_count": 1}, scope(exchange(response(), IMAGE)), scope(LOST)),
    "client": Example({"must_not_contain": ["x"]}, scope(SERVED), scope(exchange(response(200, b"x")))),
    "error": Example({"json": True}, scope(exchange(refused())), scope(SERVED)),
    "max_ms": Example(100, scope(exchange(response(took_s=0.05))), scope(exchange(response(took_s=0.2)))),
    "message_mentions": Example(
        ["4", "5"], scope(exchange(refused(message="5 of 4."))), scope(exchange(refused(message="54 of 4")))
    ),
    "message_must_not_match": Example(
        r"(^|\s)-\d", scope(exchange(refused())), scope(exchange(refused(message="is -5")))
    ),
    "message_must_not_contain": Example(
        ["Errno"], scope(exchange(refused())), scope(exchange(refused(message="Errno 1")))
    ),
    "estimate": Example(
        {"image_tokens": 30, "tolerance": 2}, scope(exchange(response(200, b"", TOKENS))),
        scope(exchange(response(200, b"", (TOKENS[0], "33")))),
    ),
    **{
        key: Example(True, scope(exchange(response(200, b"", TOKENS), IMAGE)), scope(exchange(response(), IMAGE)))
        for key in ("tokens_from", "tokens_twice", "image_tokens_counted_once")
    },
    "images_counted": Example(
        1, scope(exchange(response(200, b"", ("x-vlmgw-images", "passed=1, shrunk=0")))), scope(exchange())
    ),
    "interim_status": Example(100, _interim(100), _interim()),
    "interim_within_ms": Example(300, _interim(100, after_s=0.1), _interim(100, after_s=1.0)),
    "connection_closed_after": Example(True, _closing(True), _closing(False)),
    "retry_after": Example(
        True, scope(exchange(response(429, b"", ("retry-after", "3")))), scope(exchange(response(429)))
    ),
    "gateway_alive_after": Example(True, scope(SERVED, alive_after=True), scope(SERVED, alive_after=False)),
    "origin_calls": Example(1, scope(SERVED, origin_calls=[origin_call("/a")]), scope(SERVED)),
    "origin_calls_at_most": Example(0, scope(SERVED), scope(SERVED, origin_calls=[origin_call("/a")])),
    "origin_targets": Example(
        ["/a%2F"], scope(SERVED, origin_calls=[origin_call("/a%2F")]), scope(SERVED, origin_calls=[origin_call("/a/")])
    ),
    "origin_headers_absent": Example(
        ["Cookie"], scope(SERVED, origin_calls=[origin_call("/a")]),
        scope(SERVED, origin_calls=[origin_call("/a", ("cookie", "a=1"))]),
    ),
    "origin_bytes_read_at_most": Example(10, scope(SERVED, origin_bytes=10), scope(SERVED, origin_bytes=11)),
    "origin_connection_closed_within_ms": Example(
        1000, scope(exchange(), origin_calls=[origin_call("/a", closed_at_s=100.5)]),
        scope(exchange(), origin_calls=[origin_call("/a", closed_at_s=None)]),
    ),
    "backend_connection_closed_within_ms": Example(1000, _left(100.5), _left(102.0)),
    "first_connection_closed": Example(True, _left(100.0), _left(None)),
    "connections_to_private": Example(0, scope(SERVED), scope(SERVED, private_connections=1)),
    "backend_must_not_contain": Example(
        ["key-a"], scope(SERVED), scope(exchange(response(), call(b"{}", ("authorization", "Bearer key-a"))))
    ),
    "metrics": Example({"counted_as": "failure"}, _counted("backend_failed", 2), _counted("client_gone", 2)),
    "kv_budget_returned": Example(True, _reserved(0), _reserved(5)),
    "max_rss_growth_mb": Example(1, scope(SERVED), scope(SERVED, peak_growth_bytes=2 << 20)),
    "relations": Example([{"json": "/cache_salt", "rule": "present"}], _salted("a"), _salted(None)),
    "steps": Example([{"status": 200}], scope(SERVED), scope(LOST)),
    "alternatives": Example([{"status": 200}, {"status": 400}], scope(SERVED), scope(LOST)),
    "each_status": Example(200, _sends(200, 200), _sends(200, 500)),
    "first_status_any_of": Example([200, 500], _sends(500, role="async"), _sends(400, role="async")),
    "later_each_status": Example(200, _sends(200), _sends(500)),
    "poison_each_status_any_of": Example(
        [500], _sends(500, file="p", armed_file="p"), _sends(200, file="p", armed_file="p")
    ),
    "others_each_status": Example(200, _sends(200, file="o", armed_file="p"), _sends(500, file="o", armed_file="p")),
    "recovered_within_ms": Example(1000, _sends(200, killed_at_s=99.5), _sends(200, killed_at_s=98.0)),
    "worker_deaths_at_most": Example(2, scope(worker_deaths=2), scope(worker_deaths=3)),
    "processes_after": Example(0, scope(processes={"after": 0}), scope(processes={"after": 1})),
    "port_free": Example(True, scope(port_free=True), scope(port_free=False)),
    "no_orphans": Example(True, scope(processes={"exit": 0}), scope(processes={"exit": 2})),
    "stream_complete": Example(True, _streamed(b"answer"), _streamed(b"ans")),
    "ready_status": Example(503, scope(gets={"ready": 503}), scope(gets={"ready": 200})),
    "exit_code": Example(0, scope(exit_code=0), scope(exit_code=1)),
    "exit_within_ms_after_stream": Example(2000, _streamed(b""), scope(exchange(role="stream"), exited_at_s=103.0)),
    "exit_within_ms_after_second": Example(
        2000, scope(signals_at_s=[1.0, 2.0], exited_at_s=3.0), scope(signals_at_s=[1.0, 2.0], exited_at_s=9.0)
    ),
    "rss_growth_mb_at_most": Example(40, _memory(39, 10), _memory(41, 10)),
    "open_files_growth_at_most": Example(4, _memory(0, 14), _memory(0, 15)),
    "new_series_at_most": Example(1, _scrapes("a 1\n", "a 1\nb 1\n"), _scrapes("a 1\n", "a 1\nb 1\nc 1\n")),
    "scrape_must_not_contain_random_values": Example(
        True, _scrapes("", "a 1", random_values={"xyz"}), _scrapes("", 'a{m="xyz"} 1', random_values={"xyz"})
    ),
    "counters_never_decrease": Example(True, _scrapes("a_total 1", "a_total 2"), _scrapes("a_total 2", "a_total 1")),
    "request_counter_delta": Example(
        2, _scrapes("vlmgw_requests_total 3", names=("",), before=read_scrape("vlmgw_requests_total 1")),
        _scrapes("vlmgw_requests_total 2", names=("",), before=read_scrape("vlmgw_requests_total 1")),
    ),
    "added_latency_p95_ms_at_most": Example(100, _slow(*[0.05] * 20), _slow(*[0.2] * 20)),
    "added_latency_first_ms_at_most": Example(100, _slow(0.05), _slow(0.2)),
    "added_latency_p95_after_breaker_ms_at_most": Example(
        100, _slow(*[0.2] * 10, *[0.05] * 10), _slow(*[0.05] * 10, *[0.2] * 10)
    ),
    "metric_shows_degraded": Example(
        True, _scrapes("vlmgw_store_degraded 1", names=("during",)),
        _scrapes("vlmgw_store_degraded 0", names=("during",)),
    ),
    "recovers": Example(
        True, scope(after=read_scrape("vlmgw_store_degraded 0")), scope(after=read_scrape("vlmgw_store_degraded 1"))
    ),
}  # fmt: skip

BOTH = ["step1", "step2"]
IMAGES = ["step1/image0", "step2/image0"]
RELATION_EXAMPLES: list[tuple[dict[str, Any], Callable[[], Scope], Callable[[], Scope]]] = [
    ({"hash": "equal", "of": IMAGES}, lambda: _digested("a", "a"), lambda: _digested("a", "b")),
    ({"hash": "differs", "of": IMAGES}, lambda: _digested("a", "b"), lambda: _digested("a", "a")),
    ({"hash": "equal", "of": IMAGES}, lambda: _digested("a", "a"), lambda: scope(SERVED, SERVED)),
    ({"key_min_bits": 128}, lambda: _digested("0" * 32), lambda: _digested("0" * 16)),
    ({"json": "/cache_salt", "rule": "differs", "of": BOTH}, lambda: _salted("a", "b"), lambda: _salted("a", "a")),
    ({"json": "/cache_salt", "rule": "equal", "of": BOTH}, lambda: _salted("a", "a"), lambda: _salted("a", None)),
    ({"json": "/cache_salt", "rule": "absent"}, lambda: _salted(None), lambda: _salted("a")),
    ({"backend_bodies": "identical"}, lambda: _salted("a", "a"), lambda: _salted("a", "b")),
    (
        {"replica": "equal", "of": BOTH},
        lambda: scope(SERVED, SERVED),
        lambda: scope(SERVED, exchange(response(), call(replica=1))),
    ),
    (
        {"forwarded_uuid": "absent or different", "of": BOTH},
        lambda: scope(SERVED, SERVED),
        lambda: scope(*(exchange(response(), call(b'{"type":"image_url","uuid":"u"}')) for _ in range(2))),
    ),
]
