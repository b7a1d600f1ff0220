"""``vlm-gateway top``: asks admin ports again and again, and shows what changed between.

Decided here: whom to ask and how often, and what is done where output is no terminal: one frame after the other, and
with ``--json`` one object a line. Not decided here: the numbers (`reading`), their looks (`screen`).
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.live import Live

from gateway.cli.output import fail
from gateway.cli.top.exposition import read_samples
from gateway.cli.top.reading import Reading, Scraped, read
from gateway.cli.top.screen import screen

_TIMEOUT_S = 5.0
_MOST_AT_ONCE = 16
# A page has some hundred KB; what sends more, or for longer, is no gateway.
_MOST_BYTES = 32 << 20
_Frame = tuple[Reading, list[str]]


class Watched:
    """The admin ports, and what each said last."""

    def __init__(self, urls: Sequence[str], token: str | None) -> None:
        headers = {} if token is None else {b"Authorization": f"Bearer {token}".encode()}
        self._client = httpx.Client(timeout=_TIMEOUT_S, headers=headers, trust_env=False)
        self._urls = urls
        self._last: dict[str, Scraped] = {}
        self._asking = ThreadPoolExecutor(min(len(urls), _MOST_AT_ONCE), "top")

    def look(self) -> _Frame:
        """Ask all of them. What a gateway did is known from its second answer on; problems are told by address."""
        pairs, problems = [], []
        for url, answer in zip(self._urls, self._asking.map(self._scrape, self._urls), strict=True):
            if isinstance(answer, str):
                problems.append(f"{url}: {answer}")
                self._last.pop(url, None)
                continue
            pairs.append((self._last.get(url, answer), answer))
            self._last[url] = answer
        return read(pairs), problems

    def close(self) -> None:
        """Let go of connections and threads."""
        self._asking.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _scrape(self, url: str) -> Scraped | str:
        try:
            with self._client.stream("GET", f"{url}/metrics") as response:
                page = _page(response)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            return f"no answer ({type(error).__name__})"
        if response.status_code != 200:
            return f"answered {response.status_code}"
        samples = read_samples(page)
        if not any(name.startswith("vlmgw_") for name, _ in samples):
            return "has no metrics of a gateway"
        return Scraped(time.monotonic(), samples)


def _page(response: httpx.Response) -> str:
    """What it says, as far as a page of metrics goes."""
    page, stop_at_s = bytearray(), time.monotonic() + _TIMEOUT_S
    for piece in response.iter_bytes():
        page += piece
        if len(page) > _MOST_BYTES or time.monotonic() > stop_at_s:
            return ""
    return page.decode(errors="replace")


def top(
    admin: Annotated[
        list[str] | None, typer.Option(help="An admin port; repeat for replicas, which are added up.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between looks.", min=0.05, max=86_400)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look for one interval, then end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per look.")] = False,
    token: Annotated[str | None, typer.Option(help="The admin token.", envvar="VLMGW_ADMIN_TOKEN")] = None,
) -> None:
    """Show live what gateways do: requests, latency, tokens saved, workers, backends, tenants."""
    watched = Watched([_address(each) for each in admin or ["http://127.0.0.1:9464"]], token)
    frames = _frames(watched, interval)
    try:
        if once:
            reading, problems = next(frames)
            _show(reading, problems, as_json=as_json)
            if not reading.gateways:
                raise typer.Exit(1)
        elif as_json or not sys.stdout.isatty():
            for reading, problems in frames:
                _show(reading, problems, as_json=as_json)
        else:
            _live(frames)
    except (BrokenPipeError, KeyboardInterrupt):
        # `| head` has seen enough, or somebody at the keyboard has.
        sys.stderr.close()
    finally:
        watched.close()


def _address(written: str) -> str:
    url = written if "://" in written else f"http://{written}"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise fail(f"--admin {written}: must be http://host:port.", code=2)
    return url.rstrip("/")


def _frames(watched: Watched, interval_s: float) -> Iterator[_Frame]:
    watched.look()
    while True:
        time.sleep(interval_s)
        yield watched.look()


def _show(reading: Reading, problems: list[str], *, as_json: bool) -> None:
    if as_json:
        told = {"time": time.time(), **dataclasses.asdict(reading), "problems": problems}
        typer.echo(json.dumps(told, separators=(",", ":")))
        return
    console = Console(highlight=False)
    console.print(screen(reading, problems, width=console.width))


def _live(frames: Iterator[_Frame]) -> None:
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as ctrl-C: the terminal is left as it was found
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for reading, problems in frames:
            size = console.size
            live.update(screen(reading, problems, width=size.width, height=size.height), refresh=True)
