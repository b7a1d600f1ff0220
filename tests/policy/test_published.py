from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from gateway.config.policies import load_policies
from gateway.policy.effective import Selection
from gateway.policy.mappings import Steps
from gateway.policy.policyset import BUILTIN_TASKS, DEFAULT_TENANT
from gateway.policy.published import json_schema, published
from gateway.policy.resolve import resolve
from gateway.policy.rules import RULES
from tests.policy.examples import BUILTIN

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "policies"
SHIPPED = sorted(FOLDER.glob("*.yaml"))


def test_the_published_schema_is_the_registries() -> None:
    text = (FOLDER / "policy.schema.json").read_text(encoding="utf-8")
    assert text == published("schema"), "python -m gateway.policy.published schema > policies/policy.schema.json"


def test_the_schema_is_valid_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_policies_fit_the_schema(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), json_schema())


@pytest.mark.parametrize(
    "text",
    ["rules: {max_image: 1}", "hots: any", "keys: [plain]", "rules: {max_image_bytes: 20Mib}", "tasks: {ocr: 1}"],
)
def test_the_schema_refuses_what_the_gateway_refuses(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), json_schema())


def test_the_documented_table_is_the_registries() -> None:
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert published("table") in text, "python -m gateway.policy.published table"


def test_default_yaml_spells_out_the_built_in_default() -> None:
    policies = load_policies(FOLDER)
    shipped = resolve(policies, tenant=DEFAULT_TENANT, header_task=None, model=None, body_task=None)
    assert shipped.policy_version == BUILTIN.policy_version
    assert [rule.key for rule in RULES if shipped.reasons[rule.key] == "built-in default"] == []
    assert policies.tenants[DEFAULT_TENANT].tasks == tuple(sorted(BUILTIN_TASKS))


def test_shipped_policies_hold_no_keys() -> None:
    assert not load_policies(FOLDER).has_keys


def _written(default: object) -> object:
    """A default as a file would hold it."""
    if isinstance(default, Selection):
        return str(default)
    return list(default) if isinstance(default, tuple) else default


def test_every_default_is_a_value_its_kind_describes() -> None:
    for rule in RULES:
        if rule.default is not None and rule.join is None and not isinstance(rule.kind, Steps):
            default = _written(rule.default)
            jsonschema.validate(default, rule.kind.schema())
