from __future__ import annotations

import pytest

from gateway.policy.effective import CacheSalt, Mode
from gateway.policy.keys import Key
from gateway.policy.schema import parse_document
from gateway.types import OutputFormat, TaskName
from tests.policy.examples import document, node, problems_of

HASH = "sha256:" + "ab" * 32


def test_a_document_keeps_values_with_their_place() -> None:
    found = document(
        f"""\
tenant: acme
keys: ["{HASH}"]
mode: shadow
isolation: {{cache_salt: user}}
rules:
  max_images: 8
tasks:
  chat:
  ocr: {{output: png}}
models:
  "Qwen/*": {{max_pixels: 64MP}}
"""
    )
    assert found.tenant == "acme"
    assert [key.value for key in found.keys] == [Key(HASH)]
    assert found.settings["mode"].value is Mode.SHADOW
    assert found.settings["isolation.cache_salt"].value is CacheSalt.USER
    assert found.rules["max_images"].reason == "policies/acme.yaml:6 rules.max_images"
    assert found.tasks[TaskName("chat")] == {}
    assert found.tasks[TaskName("ocr")]["output"].value is OutputFormat.PNG
    assert found.models["Qwen/*"]["max_pixels"].value == 64_000_000


def test_an_empty_file_is_an_empty_document() -> None:
    assert document("# nothing but a comment\n").rules == {}


SIX_MISTAKES = """\
tenant: acme
keys: [my-secret-key]
hots: any
rules:
  max_image: 8
  max_image_bytes: 20Mib
  max_images: 8
  max_images: 9
tasks:
  ocr: {output: pgn}
"""


def test_all_mistakes_are_reported_at_once_with_line_path_and_suggestion() -> None:
    assert problems_of(SIX_MISTAKES) == [
        (
            "policies/acme.yaml:2 keys.0: expected sha256: or hmac-sha256: and 64 lower-case hex digits; keys are "
            "never written in the clear, `vlm-gateway hash-key` makes the hash"
        ),
        "policies/acme.yaml:3 hots: unknown key; did you mean hosts?",
        "policies/acme.yaml:5 rules.max_image: unknown key; did you mean max_images?",
        (
            "policies/acme.yaml:6 rules.max_image_bytes: unit 'Mib' is not one of KiB, MiB, GiB, kB, KB, MB, GB; "
            "did you mean MiB?"
        ),
        "policies/acme.yaml:8 rules.max_images: the key is written twice, first in line 7",
        "policies/acme.yaml:10 tasks.ocr.output: expected one of auto, jpeg, png, found 'pgn'; did you mean png?",
    ]


def test_what_is_right_is_kept_beside_mistakes() -> None:
    found, problems = parse_document(node(SIX_MISTAKES), "policies/acme.yaml")
    assert len(problems) == 6
    assert found.tenant == "acme"
    assert found.rules["max_images"].value == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_images: 4", "max_images: unknown key; it belongs below rules, tasks.* or models.*"),
        (
            "rules: {queue_timeout_s: 1}",
            "rules.queue_timeout_s: unknown key; it belongs at the top of the file or below tasks.*",
        ),
        ("isolation: {salt: tenant}", "isolation.salt: unknown key"),
        ("isolation: {cache_salt: yes}", "isolation.cache_salt: expected one of none, tenant, user"),
        ("isolation: tenant", "isolation: expected a mapping, found 'tenant'"),
        ("isolation.cache_salt: tenant", "unknown key"),
        ("rules: [1]", "rules: expected a mapping, found a list"),
        ("tasks: {ocr: 3}", "tasks.ocr: expected a mapping, found the number 3"),
        ("tasks: {'o c r': {}}", "a task's name has letters, digits"),
        ("tenant: a b", "tenant: expected a name"),
        ("tenant: a\ntenant: b", "the key is written twice, first in line 1"),
        ("queue_timeout_s: -1", "queue_timeout_s: -1 is out of range"),
        ("- a\n- b", "expected a mapping, found a list"),
        ("keys: word", "keys: expected a list of key hashes"),
    ],
)
def test_a_mistake_is_explained(text: str, words: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert words in found[0]
