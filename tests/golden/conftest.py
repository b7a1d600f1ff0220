"""One test per group of rows, from the directory given by ``--oracle`` or from the copies beside the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.served import our_name
from tests.golden.tables import SHIPPED, Group, Kind, groups_in

_HERE = str(Path(__file__).parent)


def oracle_directory(config: pytest.Config) -> Path:
    """The directory whose tables are checked."""
    given = config.getoption("oracle")
    return SHIPPED if given is None else Path(str(given))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise ``images``, ``shapes``, ... with the groups of that kind; no group of a kind is no test of it."""
    kinds = {"images": Kind.IMAGES, "shapes": Kind.KV, "positions": Kind.POSITIONS, "videos": Kind.VIDEOS}
    for name, kind in {**kinds, "closed": Kind.CLOSED}.items():
        if name in metafunc.fixturenames:
            groups = [group for group in groups_in(oracle_directory(metafunc.config)) if group.kind is kind]
            shown = groups if metafunc.config.getoption("oracle") is not None else [g for g in groups if _ours(g)]
            metafunc.parametrize(name, shown, ids=[f"{group.file}-{group.name}"[:120] for group in shown])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A kind that the directory does not have is no test at all, not a skipped one."""
    items[:] = [item for item in items if str(item.path.parent) != _HERE or not item.name.endswith("[NOTSET]")]


def _ours(group: Group) -> bool:
    return group.kind is not Kind.IMAGES or our_name(group.first["family"]) is not None


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> Path:
    return oracle_directory(request.config)
