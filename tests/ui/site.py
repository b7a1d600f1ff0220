"""A gateway with two engines and a guarded admin port, and Chromium to look at its page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.e2e.processes import DEADLINE_S, Engine, Gateway, write_policies
from tests.simulator import drawn

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
CAP_PIXELS = 1280 * 32 * 32
TOKEN = "open-sesame"
DESK: ViewportSize = {"width": 1360, "height": 940}
PHONE: ViewportSize = {"width": 390, "height": 844}
# As root in containers, whose /dev/shm may be small and where the sandbox of Chromium cannot be had.
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
_COMPLAINTS = frozenset({"error", "warning"})
_POLICIES = {
    "default": "tasks:\n  chat: {}\n  ocr: {max_pixels: 786432}\n  classify: {max_pixels: 262144, output: jpeg}\n",
    "acme": "tenant: acme\nkv_tokens_in_flight: 200000\nmodels:\n  'Qwen/*': {max_images: 4}\n",
}


@dataclass(slots=True)
class Site:
    gateway: Gateway
    browser: Browser
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @contextmanager
    def page(self, viewport: ViewportSize = DESK, *, dark: bool = False, token: str | None = TOKEN) -> Iterator[Page]:
        """A fresh tab; whatever it asks for, and whatever it complains of, is kept."""
        context = self.browser.new_context(
            viewport=viewport, color_scheme="dark" if dark else "light", reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        context.set_default_timeout(DEADLINE_S * 1000)
        page = context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.extend([said.text] if said.type in _COMPLAINTS else []))
        try:
            page.goto(f"{self.gateway.admin}/ui")
            if token is not None:
                page.fill("#token", token)
                page.click("#login-form button")
                page.wait_for_selector("#playground:not([hidden])")
            yield page
        finally:
            context.close()

    def hosts(self) -> set[str]:
        """Of everything that was asked for so far; pictures in the page itself have none."""
        return {split.netloc for url in self.asked if (split := urlsplit(url)).scheme not in {"blob", "data"}}

    def chat(self, client: httpx.Client, number: int, picture: str) -> int:
        """One request, with a picture in most; its status."""
        content: list[dict[str, object]] = [{"type": "text", "text": f"What is this, number {number % 7}?"}]
        if number % 4:
            content.append({"type": "image_url", "image_url": {"url": picture}})
        body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 4}
        headers = {"x-vlmgw-task": ("chat", "ocr", "classify")[number % 3]}
        return client.post(f"{self.gateway.url}/v1/chat/completions", json=body, headers=headers).status_code


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Everything started, everything ended. The engines have a cap, as most operators give them one."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "Debian's chromium is missing; .ci/setup installs it"
    expect.set_options(timeout=DEADLINE_S * 1000)
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine("--max-pixels", str(CAP_PIXELS))) for _ in range(2)]
        backends = [{"url": engine.url, "max_pixels": CAP_PIXELS} for engine in engines]
        policies = write_policies(folder / "policies", **_POLICIES)
        settings = folder / "gateway.yaml"  # JSON is YAML
        settings.write_text(json.dumps({"backends": backends, "policies": str(policies)}))
        environment = {"VLMGW_ADMIN_TOKEN": TOKEN}
        gateway = stack.enter_context(Gateway("--config", str(settings), environment=environment))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        stack.callback(browser.close)
        yield Site(gateway, browser)


def photograph(folder: Path, width: int = 1600, height: int = 1200) -> Path:
    """A drawn one, as a file."""
    path = folder / "photograph.jpg"
    path.write_bytes(drawn.photograph(width, height))
    return path
