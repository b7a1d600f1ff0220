"""Files of operators: policies and gateway.yaml are taken, or all that is wrong is told with its place."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from gateway.config.documents import SettingsProblems
from gateway.config.policies import PolicyProblems, parse_yaml
from gateway.config.settings import Settings
from gateway.config.sources import load_settings, masked
from gateway.policy.compare import effective_policies
from gateway.policy.policyset import build_policy_set
from gateway.policy.schema import parse_document
from tests.fuzz.targets.target import Target


def policies(data: bytes) -> None:
    """One document is a policy set whose every effective policy can be told, or a list of problems with lines."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return  # ``read_text`` says so by itself
    try:
        document, problems = parse_document(parse_yaml(text, "fuzz.yaml"), "fuzz.yaml")
    except PolicyProblems as error:
        problems = error.problems
        assert problems
    else:
        policy_set, found = build_policy_set((document,))
        problems += found
        if not problems:
            for each in effective_policies(policy_set):
                assert each.values
    # YAML 1.1 breaks lines at more than LF; what is missing at the end is missing on the line behind it.
    most = len(text.splitlines()) + 1
    for problem in problems:
        assert problem.message
        assert 0 <= problem.line <= most
        str(problem).encode("utf-8", "surrogatepass")


def settings(data: bytes) -> None:
    """A gateway.yaml is settings that can be shown, or a list of problems."""
    path = _scratch()
    path.write_bytes(data)
    problems: tuple[str, ...] = ()
    found: Settings | None
    try:
        found = load_settings(path, environment={})
    except SettingsProblems as error:
        found = None
        problems = error.problems
    if found is not None:
        assert masked(found)
        return
    assert problems
    assert all(problems)


@cache
def _scratch() -> Path:
    folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(dir=folder, prefix="fuzz-")) / "gateway.yaml"


TARGETS = (
    Target(
        "policies",
        "policy files: taken, or every problem with its line",
        policies,
        (
            "gateway.policy",
            "gateway.config.policies",
        ),
        replayed=60,
    ),
    Target("settings", "gateway.yaml: taken, or every problem", settings, ("gateway.config",), replayed=60),
)
