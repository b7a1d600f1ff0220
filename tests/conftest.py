"""What holds for every test: nothing from outside, repeatable examples, the engine's suite kept apart."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

ENGINE_SUITE = Path(__file__).parent / "engine"

# A test that reads the developer's settings, or sends loopback traffic through a proxy, tests something else elsewhere.
for _name in list(os.environ):
    if _name.startswith("VLMGW_") or _name.lower() in {"http_proxy", "https_proxy", "all_proxy"}:
        del os.environ[_name]

# Hundreds of processes are started here; without cached bytecode each would compile the whole program again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: a busy machine is not a bug. `HYPOTHESIS_PROFILE=explore` looks for new examples instead of repeating.
hypothesis.settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--oracle DIR``: the tables that tests/golden checks; its own copies without it."""
    parser.addoption("--oracle", metavar="DIR", default=None, help="directory of token tables for tests/golden")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/engine to `make engine-test`, which runs it in an environment that holds a real engine."""
    asked_for = any("engine" in Path(argument).parts for argument in config.invocation_params.args)
    return True if collection_path == ENGINE_SUITE and not asked_for else None
