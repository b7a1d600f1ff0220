"""Cases on disk: which there are, what they say, what a gateway must be like to serve them.

Decided here: reading a folder, placeholders, which cases may share a process. A case that cannot be read keeps the
reason and fails with it.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.case_runner.behaviour import BackendScript, BadScript, read_script
from tests.case_runner.origin import ORIGIN_ADDRESS
from tests.case_runner.settings import UnknownSetting, effective, fingerprint

# Expectations that need a gateway nobody else uses: what they measure would be others' too, and a picture that others
# have sent often gets more homes than one.
_ALONE = {"metrics", "kv_budget_returned", "max_rss_growth_mb", "replica"}
_CASE_KEYS = {
    "id", "kind", "title", "source", "notes", "request", "settings", "variables", "steps", "backend", "origin", "files",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``problem`` is why it cannot be run."""

    id: str
    kind: str
    folder: Path
    spec: dict[str, Any]
    expect: dict[str, Any]
    backend: BackendScript = field(default_factory=BackendScript)
    origin_text: str | None = None
    problem: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The case's own settings."""
        return dict(self.spec.get("settings", {}))

    @property
    def request(self) -> dict[str, Any]:
        """Method, path, headers, body."""
        return dict(self.spec.get("request", {}))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Empty for a case of one request."""
        return list(self.spec.get("steps", ()))

    @property
    def expects(self) -> set[str]:
        """Every key at any depth of the expectation."""
        return set(_keys(self.expect))

    @property
    def hosts(self) -> dict[str, Any]:
        """``hosts`` of origin.json, placeholders as they are."""
        return dict(json.loads(self.origin_text).get("hosts", {})) if self.origin_text else {}

    @property
    def needs_own_gateway(self) -> bool:
        """Whether it must not share a process with others."""
        successive = any(
            isinstance(answers, list) and any(isinstance(each, list) for each in answers)
            for answers in self.hosts.values()
        )
        operates = any("do" in step for step in self.steps)
        return operates or successive or self.backend.is_faulty or bool(self.expects & _ALONE)

    def group(self) -> str:
        """Equal for cases that one gateway process and one set of stand-ins can serve."""
        if self.needs_own_gateway:
            return self.id
        named = {name: answers for name, answers in self.hosts.items() if "{{" not in name}
        settings = fingerprint(effective(self.settings))
        return json.dumps([settings, self.backend.replicas, named], sort_keys=True)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def find_cases(root: Path, kinds: Sequence[str] = ()) -> list[Case]:
    """All cases below a folder (or the folder itself, when it is one), in the order of their names."""
    folders = [root] if (root / "case.json").is_file() else sorted(each.parent for each in root.glob("*/case.json"))
    cases = [read_case(folder) for folder in folders]
    return [case for case in cases if not kinds or case.kind in kinds]


def read_case(folder: Path) -> Case:
    """One case; what cannot be read becomes its problem."""
    try:
        spec = json.loads((folder / "case.json").read_bytes())
        expect = json.loads((folder / "expect.json").read_bytes())
    except (OSError, ValueError) as error:
        return Case(folder.name, folder.name.split("--")[0], folder, {}, {}, problem=f"cannot be read: {error}")
    case_id = spec.get("id", folder.name)
    kind = spec.get("kind", folder.name.split("--")[0])
    try:
        unknown = spec.keys() - _CASE_KEYS
        if unknown:
            raise BadScript(f"case.json: unknown {', '.join(sorted(unknown))}")
        effective(spec.get("settings", {}))
        backend = folder / "backend.json"
        script = read_script(json.loads(backend.read_bytes()) if backend.is_file() else None)
        origin = folder / "origin.json"
        origin_text = origin.read_text(encoding="utf-8") if origin.is_file() else None
    except (BadScript, UnknownSetting, OSError, ValueError, TypeError, KeyError) as error:
        return Case(case_id, kind, folder, spec, expect, problem=f"{error}")
    return Case(case_id, kind, folder, spec, expect, script, origin_text)


def random_letters(rng: random.Random, count: int) -> str:
    """So many random lower-case letters."""
    return "".join(rng.choices(string.ascii_lowercase, k=count))


@dataclass(slots=True)
class Names:
    """Values of the placeholders, and what is filled in with them. Every ``{{random}}`` is another value."""

    values: dict[str, str]
    rng: random.Random
    used_random: set[str] = field(default_factory=set)

    def fill_bytes(self, content: bytes) -> bytes:
        """Placeholders of a body or raw request; what is no known name stays."""
        for name, value in self.values.items():
            content = content.replace(b"{{" + name.encode() + b"}}", value.encode())
        while b"{{random}}" in content:
            content = content.replace(b"{{random}}", self.random(20).encode(), 1)
        return content

    def fill(self, text: str) -> str:
        """The same for text."""
        return self.fill_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def random(self, count: int) -> str:
        """A random value that is remembered."""
        value = random_letters(self.rng, count)
        self.used_random.add(value)
        return value


def repeated_variables(variables: Mapping[str, Any]) -> dict[str, str]:
    """The values of ``{"repeat": text, "times": n}`` variables; others are descriptions of the runner's own names."""
    return {
        name: str(value["repeat"]) * int(value["times"])
        for name, value in variables.items()
        if isinstance(value, dict) and "repeat" in value
    }


def static_answers(answers: Any) -> str:
    """Addresses of a name as gateway.yaml writes them: of one answer by comma, successive answers by semicolon."""
    if isinstance(answers, str):
        answers = [answers]
    successive = answers if any(isinstance(each, list) for each in answers) else [answers]
    return ";".join(
        ",".join(ORIGIN_ADDRESS if address == "public" else address for address in answer) for answer in successive
    )
