"""The fetcher against real sockets: what it sends, what it follows, what it refuses, what it leaves."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import BadMedia, BodyMemoryExhausted, SourceBlocked, SourceFailed, SourceTooLarge
from tests.media.raw_origin import NAME, OWN_ADDRESS, PNG, Answer, fetcher, get, ok, origin, redirect


async def test_an_image_is_fetched_and_nothing_of_the_client_is_sent() -> None:
    async with origin({"/a.png": ok()}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/a.png") == PNG
        head = there.heads[0].decode().lower()
    assert f"host: {NAME}:{there.port}\r\n" in head
    assert "accept: image/*\r\n" in head
    assert "accept-encoding: identity\r\n" in head
    assert "user-agent: vlm-gateway" in head
    for absent in ("authorization", "cookie", "referer", "x-api-key"):
        assert absent not in head


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("/bkt/a%2Fb.png?sig=Zm9v%2Bbar%2fx%3D%3D&exp=99", "/bkt/a%2Fb.png?sig=Zm9v%2Bbar%2fx%3D%3D&exp=99"),
        ("/k.png?a=&b&a=2&tok=x?y", "/k.png?a=&b&a=2&tok=x?y"),
        ("/3x%2520y.png", "/3x%2520y.png"),
        ("/my photo.png", "/my%20photo.png"),
        ("/s\u00fc\u00df/\u00f6.png", "/s%C3%BC%C3%9F/%C3%B6.png"),
        ("/a/../b", "/a/../b"),
        ("//x?", "//x?"),
        ("?q", "/?q"),
        ('/"{}|^`\\', "/%22%7B%7D%7C%5E%60%5C"),
        ("/100%.png?q=a|b", "/100%25.png?q=a%7Cb"),
    ],
)
async def test_the_request_target_goes_over_the_wire_as_written(written: str, sent: str) -> None:
    async with origin({sent: ok()}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}{written}") == PNG
        assert there.targets == [sent]


async def test_redirects_are_followed_up_to_the_limit() -> None:
    answers: dict[str, bytes | Answer] = {"/0": redirect("/1"), "/1": redirect("2?x=%2F"), "/2?x=%2F": redirect("3")}
    async with origin({**answers, "/3": ok()}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/0") == PNG
        assert there.targets == ["/0", "/1", "/2?x=%2F", "/3"]
    async with origin({**answers, "/3": redirect("/4"), "/4": ok()}) as there, fetcher() as client:
        with pytest.raises(SourceFailed, match="too often"):
            await get(client, f"http://{NAME}:{there.port}/0")
        assert len(there.heads) == 4


async def test_a_redirect_keeps_header_bytes_beyond_ascii() -> None:
    async with origin({"/a": redirect("/\u00fc.png"), "/%C3%BC.png": ok()}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/a") == PNG


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:{port}/x", "file:///etc/passwd", "http://0x7f.1/", "ftp://h/", "http://a b"]
)
async def test_a_redirect_may_not_leave_what_is_public(location: str) -> None:
    async with origin({"/x": ok()}, "127.0.0.1") as private:
        there_to = location.format(port=private.port)
        async with origin({"/a": redirect(there_to)}) as there, fetcher() as client:
            with pytest.raises(SourceBlocked) as caught:
                await get(client, f"http://{NAME}:{there.port}/a")
            assert caught.value.message == SourceBlocked.summary
        assert private.heads == []


async def test_a_redirect_to_nowhere_fails() -> None:
    answer = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"
    async with origin({"/a": answer}) as there, fetcher() as client:
        with pytest.raises(SourceFailed):
            await get(client, f"http://{NAME}:{there.port}/a")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost.",
        "a.b.LocalHost",
        "inner.example.test",
        "mixed.example.test",
    ],
)
async def test_private_addresses_get_one_uniform_refusal_and_no_connection(host: str) -> None:
    names = {"inner.example.test": (("127.0.0.1",),), "mixed.example.test": ((OWN_ADDRESS, "127.0.0.1"),)}
    async with origin({"/x": ok()}, "127.0.0.1") as private, fetcher(hosts=names) as client:
        with pytest.raises(SourceBlocked) as listening:
            await get(client, f"http://{host}:{private.port}/x")
        with pytest.raises(SourceBlocked) as silent:
            await get(client, f"http://{host}:9/x")
        assert private.heads == []
    assert listening.value.message == silent.value.message == SourceBlocked.summary
    assert listening.value.status == 403


async def test_a_name_is_resolved_once_and_the_answer_checked_is_the_one_dialled() -> None:
    names = {"turns.example.test": ((OWN_ADDRESS,), ("127.0.0.1",))}
    async with origin({"/x": ok()}) as there, fetcher(hosts=names) as client:
        assert await get(client, f"http://turns.example.test:{there.port}/x") == PNG
        with pytest.raises(SourceBlocked):
            await get(client, f"http://turns.example.test:{there.port}/x")
        assert len(there.heads) == 1


async def test_every_hop_is_resolved_and_checked_again() -> None:
    names = {"turns.example.test": ((OWN_ADDRESS,), ("127.0.0.1",))}
    async with origin({"/a": redirect("/x"), "/x": ok()}) as there, fetcher(hosts=names) as client:
        with pytest.raises(SourceBlocked):
            await get(client, f"http://turns.example.test:{there.port}/a")
        assert there.targets == ["/a"]


async def test_only_listed_hosts_where_a_policy_lists_any() -> None:
    async with origin({"/x": ok()}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        assert await get(client, url, hosts=("*.example.test",)) == PNG
        for hosts in ((), ("other.test",)):
            with pytest.raises(SourceBlocked):
                await get(client, url, hosts=hosts)
        assert len(there.heads) == 1


async def test_what_is_no_url_is_refused() -> None:
    async with fetcher() as client:
        for url in ("file:///etc/passwd", "../x.png", "http://h/x.png\r\nX-Evil: 1"):
            with pytest.raises(BadMedia):
                await get(client, url)


@pytest.mark.parametrize("status", [204, 206, 304, 404, 500])
async def test_any_other_status_fails(status: int) -> None:
    answer = f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()
    async with origin({"/x": answer}) as there, fetcher() as client:
        with pytest.raises(SourceFailed, match=str(status)):
            await get(client, f"http://{NAME}:{there.port}/x")


async def test_a_refused_connection_and_an_unknown_name_fail_without_detail() -> None:
    async with fetcher(hosts={"empty.example.test": ((),)}) as client:
        async with origin({}) as there:
            pass
        for host in (f"{NAME}:{there.port}", "empty.example.test"):
            with pytest.raises(SourceFailed) as caught:
                await get(client, f"http://{host}/x")
            assert caught.value.message == SourceFailed.summary


async def test_a_body_cut_short_fails() -> None:
    async with origin({"/x": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc"}) as there, fetcher() as client:
        with pytest.raises(SourceFailed):
            await get(client, f"http://{NAME}:{there.port}/x")


async def test_no_http_fails() -> None:
    async with origin({"/x": b"SSH-2.0-OpenSSH\r\n\r\n"}) as there, fetcher() as client:
        with pytest.raises(SourceFailed):
            await get(client, f"http://{NAME}:{there.port}/x")


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
async def test_codings_nobody_asked_for_fail(coding: str) -> None:
    async with origin({"/x": ok(PNG, f"Content-Encoding: {coding}")}) as there, fetcher() as client:
        with pytest.raises(SourceFailed):
            await get(client, f"http://{NAME}:{there.port}/x")


async def test_a_coding_that_is_none_is_ignored() -> None:
    async with origin({"/x": ok(PNG, "Content-Encoding: aws-chunked")}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/x") == PNG


async def test_the_limit_itself_is_allowed() -> None:
    async with origin({"/x": ok(b"x" * 1_000)}) as there, fetcher() as client:
        assert len(await get(client, f"http://{NAME}:{there.port}/x", max_bytes=1_000)) == 1_000


async def test_a_declared_size_is_refused_before_the_body_is_read() -> None:
    async def declare(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            there.written_bytes += 65_536

    async with origin({"/x": declare}) as there, fetcher() as client:
        with pytest.raises(SourceTooLarge):
            await get(client, f"http://{NAME}:{there.port}/x")
        await asyncio.wait_for(there.gone.wait(), 30)
        assert there.written_bytes < 8_000_000


async def test_an_endless_body_is_cut_at_the_limit() -> None:
    async def pour(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()
            there.written_bytes += 65_536

    async with origin({"/x": pour}) as there, fetcher() as client:
        with pytest.raises(SourceTooLarge):
            await get(client, f"http://{NAME}:{there.port}/x")
        await asyncio.wait_for(there.gone.wait(), 30)
        assert there.written_bytes < 12_000_000


async def stall(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [stall, drip])
async def test_slow_origins_are_left_at_the_total_time(answer: Answer) -> None:
    tasks: list[asyncio.Task[object]] = []

    async def watched(writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        await answer(writer)

    async with origin({"/x": watched}) as there, fetcher(total_timeout_s=0.1) as client:
        with pytest.raises(SourceFailed, match="in time"):
            await get(client, f"http://{NAME}:{there.port}/x")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_callers_deadline_counts_too() -> None:
    async with fetcher() as client:
        with pytest.raises(SourceFailed, match="in time"):
            await client.fetch(
                f"http://{NAME}/x",
                tenant="t",
                hosts=None,
                max_bytes=1,
                deadline_s=asyncio.get_running_loop().time(),
                take=lambda _: None,
            )


async def test_every_byte_is_asked_for_before_it_is_kept() -> None:
    asked: list[int] = []

    def take(byte_count: int) -> None:
        asked.append(byte_count)
        if sum(asked) > len(PNG):
            raise BodyMemoryExhausted

    async with origin({"/a": ok(), "/b": ok()}) as there, fetcher() as client:
        for path in ("a", "b"):
            fetching = get(client, f"http://{NAME}:{there.port}/{path}", take=take)
            if path == "a":
                assert await fetching == PNG
                assert sum(asked) == len(PNG)
            else:
                with pytest.raises(BodyMemoryExhausted):
                    await fetching


async def test_cancelling_closes_the_connection() -> None:
    started = asyncio.Event()

    async def begin(writer: asyncio.StreamWriter) -> None:
        started.set()
        await drip(writer)

    async with origin({"/x": begin}) as there, fetcher() as client:
        task = asyncio.create_task(get(client, f"http://{NAME}:{there.port}/x"))
        await asyncio.wait_for(started.wait(), 30)
        assert not there.gone.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(there.gone.wait(), 30)


async def test_no_connection_is_kept() -> None:
    async with origin({"/x": ok()}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        await get(client, url)
        await asyncio.wait_for(there.gone.wait(), 30)
        await get(client, url)
        assert all(b"keep-alive" not in head.lower() for head in there.heads)
