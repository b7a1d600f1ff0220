"""The runbook can be followed: the program takes its commands, its queries ask for what there is, its files parse."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from gateway.cli.commands import application
from gateway.config.documents import SettingsProblems
from gateway.config.sources import load_settings
from gateway.errors import all_errors
from gateway.media.crew import Reason
from gateway.telemetry.catalogue import DECLARATIONS
from tests.docs.blocks import DOCS
from tests.docs.named_settings import unknown_settings
from tests.grafana.expressions import parsed, selected
from tests.grafana.known import RECORDED, SERIES, TARGET

PAGE = (DOCS / "runbook.md").read_text(encoding="utf-8")
# Blocks stand in lists too.
BLOCKS = [
    (language, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE))
    for indent, language, body in re.findall(r"^( *)```(\w+)[^\n]*\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
]
# Prometheus' own and the client library's, beside those that dashboards ask for.
_MORE = {"scrape_samples_scraped": set[str](), "process_start_time_seconds": set[str]()}


def lines(language: str) -> list[str]:
    return [line for kind, body in BLOCKS if kind == language for line in body.splitlines() if line.strip()]


COMMANDS = sorted({line for line in lines("sh") if line.startswith("vlm-gateway ")})
QUERIES = sorted(set(lines("promql")))


@pytest.fixture(autouse=True)
def somewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that the commands name, empty: options look whether they are there."""
    folder = tmp_path_factory.mktemp("runbook")
    for name in ("policies", "new-policies"):
        (folder / name).mkdir()
    for name in ("gateway.yaml", "request.json", "gateway.log", "access.log"):
        (folder / name).touch()
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_program_takes_the_command(line: str) -> None:
    _, name, *words = shlex.split(line)
    group = typer.main.get_command(application())
    command = group.commands[name]  # type: ignore[attr-defined]  # the app is a group
    with command.make_context(name, words, resilient_parsing=False) as context:
        assert context.params


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_what_there_is(query: str) -> None:
    asked = list(selected(parsed(query)))
    assert asked
    for each in asked:
        labels = RECORDED[each.metric] if each.metric in RECORDED else _labels(each.metric)
        assert set(each.matched) | set(each.grouped) <= labels | TARGET, each


def _labels(metric: str) -> set[str]:
    return _MORE[metric] if metric in _MORE else SERIES[metric][1]


def test_other_commands_are_shell(tmp_path_factory: pytest.TempPathFactory) -> None:
    script = "\n".join(lines("sh"))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_names_in_the_text_exist() -> None:
    assert unknown_settings(PAGE) == []
    known = {each.full_name for each in DECLARATIONS} | SERIES.keys() | RECORDED.keys()
    assert sorted(set(re.findall(r"\bvlmgw[_:]\w[\w:]*", PAGE)) - known) == []
    codes = {error.code for error in all_errors()}
    assert set(re.findall(r"--code (\w+)", PAGE)) <= codes
    assert {"memory", "deadline", "crash", "forbidden", "start", "age"} <= set(Reason.__args__)  # type: ignore[attr-defined]  # a Literal


def _anchors() -> Iterator[str]:
    for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_links_within_lead_somewhere() -> None:
    assert sorted(set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) - set(_anchors())) == []


def test_every_procedure_is_listed() -> None:
    listing, *rest = PAGE.split("# Procedures", 1)[1].split("\n## ")
    for part in rest:
        title = part.split("\n", 1)[0]
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        assert f"](#{anchor})" in listing, title


def test_yaml_is_what_it_says() -> None:
    texts = [body for kind, body in BLOCKS if kind == "yaml"]
    assert len(texts) == 3
    for text in texts:
        assert yaml.safe_load(text)
    example = next(text for text in texts if "redis:" in text)
    Path("redis.yaml").write_text(example, encoding="utf-8")
    with pytest.raises(SettingsProblems, match=r"identity\.secret: is an example's"):
        load_settings(Path("redis.yaml"))
    secret = re.search(r'secret: "([^"]+)"', example)
    assert secret
    Path("redis.yaml").write_text(example.replace(secret[1], "w3Jx0c7kqTzB5nYv1LhR"), encoding="utf-8")
    assert load_settings(Path("redis.yaml")).redis.min_replicas == 2
