"""The chart's schema and table come from its values, each of which says what it is; settings are read strictly."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from docs import charting
from docs.charting import prometheus_rule, settings_schema, values, values_schema
from gateway.config.settings import Settings

CONFIG = settings_schema(Settings, "")


def _takes(document: str) -> bool:
    return not list(jsonschema.Draft7Validator(CONFIG).iter_errors(yaml.safe_load(document)))


@pytest.mark.parametrize(
    "document",
    [
        "{}",
        "backends: [http://a:8000, {url: 'http://b:8000', max_pixels: 1280x32x32, models: [a, b]}]",
        "server: {max_body_bytes: 64MiB, keepalive_timeout_s: 500ms, cors_origins: 'https://a, https://b'}",
        "models: {m: {parameters: {max_tokens: 512}}}",
        "sources: [{url: 'kubernetes:///vllm', backend: {engine: vllm}}]",
        "redis: {url: null}",
    ],
)
def test_what_the_gateway_takes_is_taken(document: str) -> None:
    assert _takes(document)


@pytest.mark.parametrize(
    "document",
    [
        "sever: {}",
        "backends: http://a:8000",
        "backends: [{uri: 'http://a'}]",
        "backends: [{url: 'http://a', engine: tgi}]",
        "server: {port: 8080}",
        "server: {settle_s: 5s}",
        "media: {workers: many}",
        "media: {worker_nice: 20}",
        "log: {access: often}",
        "policies: here",
    ],
)
def test_mistakes_and_what_the_chart_sets_are_not(document: str) -> None:
    assert not _takes(document)


def test_nothing_but_what_is_listed_is_taken_at_any_depth() -> None:
    def sections(schema: object) -> list[dict[str, object]]:
        if not isinstance(schema, dict):
            return []
        inner = [each for value in schema.values() for each in sections(value)]
        return [schema, *inner] if "properties" in schema and schema.get("type") == "object" else inner

    found = sections(json.loads(values_schema()))
    assert len(found) > 20
    assert all(each["additionalProperties"] is False for each in found)


def test_a_value_of_which_nothing_is_said_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "values.yaml"
    silent.write_text("# Said.\none: 1\ntwo:\n  three: 3\n", encoding="utf-8")
    monkeypatch.setattr(charting, "VALUES", silent)
    with pytest.raises(ValueError, match=r"two\.three: nothing is said"):
        values()


def test_a_readme_without_its_marks_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "README.md"
    plain.write_text("# Chart\n", encoding="utf-8")
    monkeypatch.setattr(charting, "README", plain)
    with pytest.raises(ValueError, match="has no"):
        charting.chart_readme()


def test_the_rules_of_the_object_are_those_of_the_files() -> None:
    groups = [
        group
        for name in ("recording", "alerts")
        for group in yaml.safe_load((charting.ROOT / "grafana" / "rules" / f"{name}.yaml").read_text())["groups"]
    ]
    assert yaml.safe_load(prometheus_rule())["spec"]["groups"] == groups
