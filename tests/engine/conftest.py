"""Four engines and one gateway for the whole run: both models, each as shipped and started with a pixel cap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.gateway_process import ROOT, GatewayProcess
from tests.engine.vllm import VllmServer

MODELS = ("qwen3vl", "qwen25vl")
CAPPED = "-capped"
# 576 tokens of 32 x 32 pixels, 752 of 28 x 28.
ENGINE_CAP_PIXELS = 768 * 768
POLICY_CAP_PIXELS = 512 * 512
FRAMES_TASK = "frames"
POLICY = {"tasks": {"chat": {}, "classify": {"max_pixels": POLICY_CAP_PIXELS}, FRAMES_TASK: {"video": "frames"}}}


# The smoke plays these on the engines that all of them share, and of the shapes, which differ in size only, every
# eighth. What starts engines of its own, takes minutes (a hundred exact prompts), or needs the engine's front end to be
# on time (leaving) is left to the whole suite.
SMOKE_FILES = {
    "test_answers",
    "test_contract",
    "test_other_apis",
    "test_sdk",
    "test_tokens",
}
SHAPE_FILES = {"test_tokens"}
SMOKE_SHARE = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where tests/engine/run has installed the engine, and how much of the suite is wanted."""
    parser.addoption("--engine-dir", type=Path, default=ROOT / ".engine", help="the installed engine and models")
    parser.addoption("--smoke", action="store_true", help="a few minutes' worth of the engine's suite")


def _is_of_smoke(item: pytest.Item, number: int) -> bool:
    return item.path.stem in SMOKE_FILES and (item.path.stem not in SHAPE_FILES or number % SMOKE_SHARE == 0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give a test time for the start of engines; of the smoke, leave out the rest."""
    if config.getoption("--smoke"):
        left_out = [item for number, item in enumerate(items) if not _is_of_smoke(item, number)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(1600))


@dataclass(frozen=True, slots=True)
class Site:
    """What runs: engines by served name, and the gateway in front of all of them."""

    engines: dict[str, VllmServer]
    gateway: GatewayProcess


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start everything; the engines side by side."""
    engine_dir: Path = request.config.getoption("--engine-dir")
    engines: dict[str, VllmServer] = {}
    with ExitStack() as stack:
        for model in MODELS:
            for suffix, flags in (("", ()), (CAPPED, (f'--mm-processor-kwargs={{"max_pixels":{ENGINE_CAP_PIXELS}}}',))):
                server = VllmServer(engine_dir, model, f"tiny-{model}{suffix}", *flags)
                stack.callback(server.end)
                engines[server.served_name] = server
                server.begin()
        for server in engines.values():
            server.wait_healthy()
        backends = [
            {"url": server.url, "name": name, "max_pixels": ENGINE_CAP_PIXELS if name.endswith(CAPPED) else None}
            for name, server in engines.items()
        ]
        folder = tmp_path_factory.mktemp("gateway")
        models = {f"tiny-{model}": {"tokenizer": str(engine_dir / "models" / model)} for model in MODELS}
        yield Site(engines, stack.enter_context(GatewayProcess(folder, backends, POLICY, models)))
        for server in engines.values():
            server.ask_to_end()


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    """The served name of one model after the other, on engines without a cap."""
    return f"tiny-{request.param}"
