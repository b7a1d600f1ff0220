"""The reference pages say what the code says today, and name everything there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import PAGES, apis_page, configuration_page, errors_page, metrics_page
from gateway.api.routes import ROUTES
from gateway.config.sources import OTHER_NAMES, environment_name, leaf_paths
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
