"""What is published of the language: policies/policy.schema.json for editors, and the table of keys for people.

Decided here: its outline. Keys, kinds and defaults come from `rules` and `schema`. It helps while typing; what a file
means, and all that JSON Schema cannot say, is decided by reading it (`schema`, `policyset`).
`python -m gateway.policy.published schema > policies/policy.schema.json` writes it anew, `... table` prints the table
of docs/policies.md; a test compares both.
"""

from __future__ import annotations

import json
import sys

from gateway.policy.histories import Histories
from gateway.policy.keys import Keys
from gateway.policy.mappings import AmountsByWord, Steps
from gateway.policy.policyset import BUILTIN_TASKS
from gateway.policy.rates import Rates
from gateway.policy.rules import RULES
from gateway.policy.rules.adaptive import AdaptiveKind
from gateway.policy.shown import told
from gateway.policy.tenant_keys import TENANT_KEYS
from gateway.policy.values import NAME, Amount, JsonSchema, Kind, Name


def json_schema() -> JsonSchema:
    """The schema of one file, as JSON Schema 2020-12."""
    top: JsonSchema = {
        "tenant": {"description": "Whose policy this is; without it, everybody's.", **Name().schema()},
        "keys": {"description": "API keys as sha256: hashes, see `vlm-gateway hash-key`.", **Keys().schema()},
    }
    sections: dict[str, dict[str, object]] = {}
    for tenant_key in TENANT_KEYS:
        section, _, key = tenant_key.key.rpartition(".")
        described = {"description": tenant_key.summary, **tenant_key.kind.schema()}
        if section:
            sections.setdefault(section, {})[key] = described
            top[section] = _closed(sections[section])
        else:
            top[key] = described
    of_rules: JsonSchema = {rule.key: _rule(rule.summary, rule.kind.schema()) for rule in RULES}
    of_tasks: JsonSchema = {key.key: _rule(key.summary, key.kind.schema()) for key in TENANT_KEYS if key.in_tasks}
    rules, task = {"$ref": "#/$defs/rules"}, {"anyOf": [{"$ref": "#/$defs/task"}, {"type": "null"}]}
    tasks: JsonSchema = {
        "description": "Rules per task. A tenant may ask for the tasks its file lists, else for those of default.yaml.",
        "type": "object",
        "properties": dict.fromkeys(BUILTIN_TASKS, task),  # offered while typing
        "patternProperties": {f"^{NAME.pattern}$": task},
        "additionalProperties": False,
    }
    models: JsonSchema = {
        "description": "Rules per served model; * stands for any characters. They win over tasks and rules.",
        "type": "object",
        "additionalProperties": {"anyOf": [rules, {"type": "null"}]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vlm-gateway policy",
        **_closed(
            {**top, "rules": {"description": "Rules for every task.", **rules}, "tasks": tasks, "models": models}
        ),
        "$defs": {"rules": _closed(of_rules), "task": _closed(of_rules | of_tasks)},
    }


def _rule(summary: str, schema: JsonSchema) -> JsonSchema:
    return {"description": summary, **schema}


def _closed(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def markdown_table() -> str:
    """Every key with its default and summary, as docs/policies.md shows it."""
    also = " Also per task."
    tenant_wide = [(key.key, key.kind, key.default, key.summary + also * key.in_tasks) for key in TENANT_KEYS]
    rules = [(rule.key, rule.kind, rule.default, rule.summary) for rule in RULES]
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key, kind, default, summary in (*tenant_wide, *rules):
        rows.append(f"| `{key}` | `{_shown(kind, default)}` | {summary} |")
    return "\n".join(rows)


def _shown(kind: Kind, value: object) -> str:
    """A value as one would write it in a policy file."""
    match value:
        case None if isinstance(kind, AdaptiveKind):
            return "off"
        case None:
            return (kind.word or "") if isinstance(kind, Amount | Histories) else "any"
        case () if isinstance(kind, Steps | Rates):
            return "none"
        case () if isinstance(kind, AmountsByWord):
            return "ignore"
    return told(value)


def published(what: str) -> str:
    """The text of ``table`` or ``schema``, ending in a newline."""
    text = markdown_table() if what == "table" else json.dumps(json_schema(), indent=2)
    return f"{text}\n"


if __name__ == "__main__":
    sys.stdout.write(published(sys.argv[1]))
