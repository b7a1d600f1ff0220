"""LangChain, LlamaIndex and LiteLLM, unmodified: each changes its base URL and nothing else.

Each plays its scenes in one process of its own environment (``make clients``); what came of them is looked at here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import Engine, Gateway
from tests.simulator import drawn
from tests.simulator.drawn import data_url

# Three libraries are imported and played before the first test.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".clients/bin/python"
PROGRAMS = Path(__file__).parent / "programs"
CAP = str(1280 * 32 * 32)
PICTURES = {
    "big": data_url(drawn.jpeg(2000, 1500), "image/jpeg"),
    "small": data_url(drawn.png(448, 448), "image/png"),
    "broken": data_url(drawn.jpeg(64, 64)[:400], "image/jpeg"),
}
# What the engine saw of each: the big picture arrives shrunk, the small one as it is.
BIG, SMALL = "1312x960 (1230 tokens", "448x448 (196 tokens"
PROMPT_TOKENS = 1241
ARGUMENTS = {"city": "simulated", "days": 1}

LANGCHAIN = (
    "openai_whole", "openai_image_url", "openai_streamed", "openai_responses", "anthropic_whole", "anthropic_streamed",
)  # fmt: skip
LLAMA_INDEX = ("openai_whole", "openai_streamed", "anthropic_whole", "anthropic_streamed")
LITELLM = (
    "openai_whole", "vllm_whole", "openai_streamed", "anthropic_whole", "anthropic_streamed", "responses_whole",
)  # fmt: skip
ANSWERED = [
    *(("langchain_chat", scene) for scene in LANGCHAIN),
    *(("llama_index_chat", scene) for scene in LLAMA_INDEX),
    *(("litellm_chat", scene) for scene in LITELLM),
]
LIBRARIES = ("langchain_chat", "llama_index_chat", "litellm_chat")


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with (
        Engine("--max-pixels", CAP, "--speed", "0") as engine,
        Gateway("--backend", engine.url, "--max-pixels", CAP, "--pool", "1") as running,
    ):
        yield running


@pytest.fixture(scope="module")
def played(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every library's scenes by name, each with what it returned or raised."""
    assert PYTHON.exists(), "the client libraries are not installed: run `make clients`"
    pictures = tmp_path_factory.mktemp("clients") / "pictures.json"
    pictures.write_text(json.dumps(PICTURES), encoding="utf-8")
    return {name: _played(name, gateway.url, pictures) for name in LIBRARIES}


def _played(name: str, url: str, pictures: Path) -> dict[str, Any]:
    # Nothing may be asked of anybody but the gateway.
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [PYTHON, PROGRAMS / f"{name}.py", url, pictures], capture_output=True, text=True, check=False, env=quiet
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("library", "scene"), ANSWERED)
def test_a_picture_is_answered_for(played: dict[str, dict[str, Any]], library: str, scene: str) -> None:
    found = played[library][scene]
    assert "raised" not in found, found
    assert BIG in found["text"]
    assert found.get("input_tokens", PROMPT_TOKENS) == PROMPT_TOKENS


@pytest.mark.parametrize("library", LIBRARIES)
def test_many_at_once_and_streams(played: dict[str, dict[str, Any]], library: str) -> None:
    found = played[library]["openai_async"]
    assert "raised" not in found, found
    assert all(BIG in text and "number" in text for text in found["texts"])
    assert SMALL in found["streamed"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tools(played: dict[str, dict[str, Any]], library: str) -> None:
    found = played[library]["openai_tools"]
    assert "raised" not in found, found
    arguments = found["arguments"]
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == ARGUMENTS


def test_what_only_langchain_does(played: dict[str, dict[str, Any]]) -> None:
    found = played["langchain_chat"]
    assert found["openai_structured"] == ARGUMENTS
    assert found["anthropic_tools"]["arguments"] == ARGUMENTS
    assert found["anthropic_counted"] == PROMPT_TOKENS
    assert found["openai_streamed"]["pieces"] > 5


@pytest.mark.parametrize("library", LIBRARIES)
def test_refusals_are_the_librarys_own_errors_and_name_the_part(
    played: dict[str, dict[str, Any]], library: str
) -> None:
    refused, unknown = played[library]["openai_refused"], played[library]["openai_unknown_model"]
    assert "BadRequestError" in refused["kinds"]
    assert "messages.0.content.1.image_url" in refused["text"]
    assert "NotFoundError" in unknown["kinds"]
    assert "nobody/serves-this" in unknown["text"]
    if library == "langchain_chat":
        assert "messages.0.content.1.source.data" in played[library]["anthropic_refused"]["text"]
