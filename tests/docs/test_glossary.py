"""One word per thing: code and pages use the glossary's words, and none of those it turns down."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.tree import ROOT, project_files, shown, source_files

GLOSSARY = ROOT / "docs/glossary.md"
# Each is unmistakable: words with another honest meaning (node of a syntax tree, pod of Kubernetes) are left to people.
# `gen_ai.provider.name` is OpenTelemetry's.
TURNED_DOWN = re.compile(
    r"\b(use[ -]cases?|context cache|load[ -]?balanc\w*|sticky|stickiness|customers?|(?<!gen_ai[.])provider"
    r"|(?<!prepared[ -])image cache)\b",
    re.IGNORECASE,
)


def _texts() -> list[Path]:
    pages = [path for path in project_files() if path.suffix == ".md" and path.is_relative_to(ROOT / "docs")]
    return [*source_files(), *pages, ROOT / "README.md"]


def test_no_word_that_was_turned_down_is_used() -> None:
    found = [
        f"{shown(path)}:{number} {match[0]}"
        for path in _texts()
        if path != GLOSSARY
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := TURNED_DOWN.search(line))
    ]
    assert found == []


def test_the_glossary_turns_down_what_this_test_looks_for() -> None:
    third_column = " ".join(
        line.split("|")[3] for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    )
    assert {"use case", "context cache", "stickiness", "customer", "provider", "image cache"} <= {
        word.strip() for word in third_column.split(",") for word in re.split(r"\s{2,}", word) if word.strip()
    }


def test_every_stage_is_a_word_of_the_architecture() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    journey = "".join((ROOT / "gateway" / name).read_text(encoding="utf-8") for name in ("journey.py", "delivery.py"))
    laps = set(re.findall(r'watch\.lap\("(\w+)"\)', journey))
    described = set(re.findall(r"^\| \d+ \| (\w+) \|", page, re.MULTILINE))
    assert laps == described
