"""A Dockerfile as data: stages and their steps, as far as ours uses the language.

Decided here: what the text says. Not decided here: what is done with it (``replay``), what is good style (hadolint).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker/Dockerfile"
_FLAG = re.compile(r"--[\w-]+(?:=\S+)?\s+")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. ``flags`` as written; ``text`` is what follows them."""

    keyword: str
    flags: tuple[str, ...]
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """The exec form (a JSON list), or plain words. Raises ValueError for a shell form where a list belongs."""
        if self.text.startswith("["):
            found = json.loads(self.text)
            return tuple(str(word) for word in found)
        if self.keyword in ("CMD", "ENTRYPOINT"):
            raise ValueError(f"{self.keyword} in shell form: {self.text}")
        return tuple(self.text.split())

    def pairs(self, known: Mapping[str, str]) -> dict[str, str]:
        """``KEY=value`` of ENV and LABEL, values with variables put in."""
        found = re.findall(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S*)', self.text)
        return {key: expanded(value.strip('"'), known) for key, value in found}


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands between one FROM and the next."""

    name: str
    base: str
    steps: tuple[Step, ...]

    def last(self, keyword: str) -> Step:
        """The step that counts where each overrides the one before."""
        return [step for step in self.steps if step.keyword == keyword][-1]

    def all(self, keyword: str) -> list[Step]:
        return [step for step in self.steps if step.keyword == keyword]

    def environment(self, arguments: Mapping[str, str]) -> dict[str, str]:
        """ENV as a container gets it."""
        found: dict[str, str] = {}
        for step in self.all("ENV"):
            found |= step.pairs({**arguments, **found})
        return found


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$NAME`` and ``${NAME}`` put in; an unknown one is nothing."""
    return _VARIABLE.sub(lambda match: known.get(match[1] or match[2], ""), text)


def steps_of(text: str) -> list[Step]:
    """All instructions in their order, comments and continued lines put away."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    steps = []
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        keyword, _, rest = line.partition(" ")
        rest, flags = rest.strip(), []
        while keyword in ("RUN", "COPY", "FROM", "HEALTHCHECK") and (flag := _FLAG.match(rest)):
            flags.append(flag[0].strip())
            rest = rest[flag.end() :]
        steps.append(Step(keyword, tuple(flags), rest))
    return steps


def stages_of(text: str) -> tuple[dict[str, str], list[Stage]]:
    """The arguments before the first FROM with their defaults, and the stages."""
    arguments: dict[str, str] = {}
    found: list[tuple[str, str, list[Step]]] = []
    for step in steps_of(text):
        if step.keyword == "FROM":
            base, _, name = step.text.partition(" AS ")
            found.append((name.strip(), expanded(base.strip(), arguments), []))
        elif not found:
            name, _, default = step.text.partition("=")
            arguments[name] = default
        else:
            found[-1][2].append(step)
    return arguments, [Stage(name, base, tuple(steps)) for name, base, steps in found]


def shipped() -> tuple[dict[str, str], list[Stage]]:
    """Ours."""
    return stages_of(DOCKERFILE.read_text(encoding="utf-8"))
