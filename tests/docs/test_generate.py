"""The reference pages say what the code says today, and name everything there is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.examples import EXAMPLES
from docs.generate import ENTRIES, PAGES, apis_page, configuration_page, errors_page, has_default, metrics_page
from gateway.api.routes import ROUTES
from gateway.config.documents import plain_values
from gateway.config.settings import Settings
from gateway.config.sources import OTHER_NAMES, Reader, environment_name, leaf_paths
from gateway.errors import GatewayError, all_errors
from gateway.telemetry.catalogue import DECLARATIONS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_the_one_that_the_code_gives(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/{name} is out of date: python -m docs.generate"


def test_every_error_is_there_once() -> None:
    page = errors_page()
    for error in all_errors():
        if error is not GatewayError:
            assert page.count(f"`{error.code}` |") == 1


def test_every_metric_is_there_once() -> None:
    page = metrics_page()
    for declaration in DECLARATIONS:
        assert page.count(f"`{declaration.full_name}`") == 1


def test_every_setting_is_there_with_its_name_in_the_environment() -> None:
    page = configuration_page()
    for path in leaf_paths():
        assert f"`{environment_name(path)}`" in page
    for name in OTHER_NAMES:
        assert f"`{name}`" in page


@pytest.mark.parametrize("name", PAGES)
def test_every_row_of_a_table_has_all_its_cells(name: str) -> None:
    widths: set[int] = set()
    for line in [*PAGES[name]().splitlines(), ""]:
        if line.startswith("|"):
            widths.add(line.replace("\\|", "").count("|"))
            continue
        assert len(widths) <= 1, line
        widths.clear()


def test_every_path_is_there_once() -> None:
    page = apis_page()
    for path in ROUTES:
        assert page.count(f"| `{path}` |") == 1


def _without_default() -> Iterator[str]:
    for field in dataclasses.fields(Settings):
        section = getattr(Settings(), field.name)
        if dataclasses.is_dataclass(section):
            yield from (f"{field.name}.{each.name}" for each in dataclasses.fields(section) if not has_default(each))
        elif not has_default(field):
            yield field.name
    for name, cls in ENTRIES.items():
        yield from (f"{name}.*.{each.name}" for each in dataclasses.fields(cls) if not has_default(each))


def test_every_setting_without_a_default_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(_without_default())


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_is_read_as_it_is_written(path: str) -> None:
    document: object = plain_values(EXAMPLES[path], path)
    *above, name = path.split(".")
    document = {name: document}
    for step in reversed(above):
        document = {step: document} if step != "*" else {"m": document} if above[0] == "models" else [document]
    reader = Reader("example")
    read = reader.record(Settings, document, "", Settings())
    assert reader.problems == []
    assert read != Settings()


def test_each_setting_says_when_it_is_taken_up() -> None:
    lines = [line.split(" | ") for line in configuration_page().splitlines() if line.startswith("| `")]
    settings = [line for line in lines if len(line) > 3]
    assert {line[4] for line in settings} == {"start", "reload"}
    reloaded = {environment_name(path) for path, field in leaf_paths().items() if field.metadata["reload"]}
    assert {line[6].strip("`| ") for line in settings if line[4] == "reload" and len(line) > 6} - {""} == reloaded
