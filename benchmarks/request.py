"""A whole request with a 12-megapixel photograph that was never seen before: the CPU of all the gateway's processes."""

from __future__ import annotations

import base64
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.contenders import Asker, cpu_s, relay_and_gateway
from benchmarks.pictures import Picture
from benchmarks.stub import MODEL
from gateway.types import Fidelity

_WARM_UP = 4
_CAP_PIXELS = "1280x32x32"


@contextmanager
def _policies(fidelity: Fidelity) -> Iterator[str]:
    """A folder whose only policy is the built-in one with this fidelity."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "default.yaml").write_text(f"rules:\n  fidelity: {fidelity.value}\n")
        yield folder


def _body(file: bytes) -> bytes:
    url = "data:image/jpeg;base64," + base64.b64encode(file).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is in the picture?"}]
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}]}).encode()


def gateway_cost(picture: Picture, rounds: int, fidelity: Fidelity) -> dict[str, float]:
    """Medians over ``rounds`` requests, each with other bytes behind the end of the same JPEG, so none is known."""
    file = picture.path.read_bytes()
    cpu_ms, latency_ms = [], []
    with (
        _policies(fidelity) as folder,
        relay_and_gateway(("--max-pixels", _CAP_PIXELS, "--pool", "1", "--policies", folder)) as site,
    ):
        gateway = next(each for each in site.contenders if each.name == "gateway")
        asker = Asker(gateway)
        for number in range(_WARM_UP + rounds):
            body = _body(file + str(number).encode())
            before_s = cpu_s(gateway.pid)
            taken_s = asker.ask(body)
            if number >= _WARM_UP:
                cpu_ms.append(1000 * (cpu_s(gateway.pid) - before_s))
                latency_ms.append(1000 * taken_s)
    return {
        "gateway_cpu_ms": round(statistics.median(cpu_ms), 1),
        "gateway_cpu_min_ms": round(min(cpu_ms), 1),
        "p50_ms": round(statistics.median(latency_ms), 1),
    }
