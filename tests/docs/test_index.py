"""Every page can be found: docs/README.md lists each once, with a line of its own; the policy for reports is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "docs/README.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \| (.+) \|$", INDEX, re.MULTILINE))


def test_every_page_is_listed_once() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(pages - ROWS.keys()) == [], "docs/README.md: add a line for each of these"
    assert [page for page in pages if INDEX.count(f"]({page})") != 1] == []


def test_every_line_leads_somewhere_and_says_what_for() -> None:
    assert [target for target in ROWS if not (ROOT / "docs" / target).exists()] == []
    assert all(len(said) > 20 for said in ROWS.values())


def test_the_security_policy_says_how_to_report_and_names_no_address() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "private vulnerability" in page.lower().replace("\n", " ")
    assert not re.search(r"[\w.+-]+@[\w-]+\.\w+|https?://", page)
    for heading in ("Supported versions", "Reporting a vulnerability", "What happens then", "What is in scope"):
        assert f"## {heading}\n" in page
    links = re.findall(r"\]\(([^)#]+)\)", page)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_next_release_notes_can_be_written() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9", "--date", "2030-01-01"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "## 9.9.9 (2030-01-01)" in made.stdout
    told = " ".join(made.stdout.split())
    for fragment in (ROOT / "docs/changes").glob("*.*.md"):
        first_words = " ".join(fragment.read_text(encoding="utf-8").split())[:60].strip()
        assert first_words in told, fragment.name
    assert "<!-- towncrier release notes start -->" in (ROOT / "docs/changelog.md").read_text(encoding="utf-8")


def test_every_fragment_has_a_type_that_is_known() -> None:
    types = re.findall(r'\[\[tool\.towncrier\.type\]\]\ndirectory = "(\w+)"', (ROOT / "pyproject.toml").read_text())
    for fragment in (ROOT / "docs/changes").glob("*.md"):
        if fragment.name != "README.md":
            assert fragment.name.split(".")[-2] in types, fragment.name
            assert len(fragment.read_text(encoding="utf-8").strip()) > 20, fragment.name


def test_the_contributors_page_names_targets_that_there_are() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE))
    assert {"help", "setup", "check", "test"} <= set(re.findall(r"^make ([a-z-]+)", page, re.MULTILINE)) <= targets
