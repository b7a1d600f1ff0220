from __future__ import annotations

from pathlib import Path

import pytest

import gateway.state
from gateway.state.scripts import SCRIPTS, registry_key, tenant_keys
from gateway.types import TenantId


def test_every_file_is_a_script_that_is_made_known() -> None:
    folder = Path(gateway.state.__file__).parent / "lua"
    assert {script.name for script in SCRIPTS} | {"prelude"} == {path.stem for path in folder.glob("*.lua")}


@pytest.mark.parametrize("name", ["a", "a{b}c", "}{", "%7B", "team-1.x"])
def test_all_keys_of_a_tenant_are_in_one_slot_of_its_own(name: str) -> None:
    keys = tenant_keys("vlmgw", TenantId(name))
    assert len(set(keys)) == 5
    tags = {key[key.index("{") + 1 : key.index("}")] for key in keys}
    assert len(tags) == 1
    assert all(key.startswith("vlmgw:1:{") for key in keys)


def test_two_tenants_never_share_keys() -> None:
    names = ["a", "a}", "a{", "a%7D", "a%", "a%25"]
    assert len({tenant_keys("p", TenantId(name)) for name in names}) == len(names)


def test_the_registry_carries_prefix_and_version() -> None:
    assert registry_key("p") == "p:1:replicas"
