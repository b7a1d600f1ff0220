"""Who is let in no more, or anew, is told; keys and their hashes are not."""

from __future__ import annotations

from gateway.policy.key_changes import EVERYBODY, key_changes
from tests.policy.examples import policy_set

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
KEYED = f"tenant: acme\nkeys: [{{hash: '{ONE}', name: ci, expires: 2027-01-31}}]"


def told(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str, object, object]]:
    found = list(key_changes(policy_set(**old), policy_set(**new)))
    assert ONE[7:15] not in repr(found)
    assert TWO[7:15] not in repr(found)
    assert {(each.task, each.model) for each in found} <= {("", "")}
    return [(each.tenant, each.key, each.old and each.old.value, each.new and each.new.value) for each in found]


def test_the_same_keys_are_no_difference() -> None:
    assert told({"acme": KEYED}, {"acme": f"# moved\n{KEYED}\nrules: {{max_images: 3}}"}) == []
    assert told({}, {}) == []


def test_the_last_key_that_goes_opens_the_gateway() -> None:
    unkeyed = "tenant: acme"
    assert told({"acme": KEYED}, {"acme": unkeyed}) == [
        (EVERYBODY, "keys", "asked for", "no key is asked for any more"),
        ("acme", "keys", "1 key: ci", "none"),
    ]
    assert told({"acme": unkeyed}, {"acme": KEYED}) == [
        (EVERYBODY, "keys", "none is asked for", "asked for"),
        ("acme", "keys", "none", "1 key: ci"),
    ]


def test_another_hash_is_another_key() -> None:
    assert told({"acme": KEYED}, {"acme": f"tenant: acme\nkeys: ['{TWO}', '{ONE.replace('1', '3')}']"}) == [
        ("acme", "keys", "1 key: ci", "2 keys (2 new, 1 gone)")
    ]


def test_a_tenant_that_goes_takes_its_keys_along() -> None:
    kept = f"tenant: other\nkeys: ['{TWO}']"
    assert told({"acme": KEYED, "other": kept}, {"other": kept}) == [("acme", "keys", "1 key: ci", "none")]


def test_what_is_said_of_a_key_that_stays() -> None:
    other = f"tenant: acme\nkeys: [{{hash: '{ONE}', name: ci, expires: 9999-12-31, task: ocr}}]"
    assert told({"acme": KEYED}, {"acme": other}) == [
        ("acme", "keys.ci.expires", "2027-02-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        ("acme", "keys.ci.task", "none", "ocr"),
    ]
    assert told({"acme": KEYED}, {"acme": f"tenant: acme\nkeys: ['{ONE}']"}) == [
        ("acme", "keys.0.name", "ci", "none"),
        ("acme", "keys.0.expires", "2027-02-01T00:00:00Z", "never"),
    ]


def test_where_the_new_keys_stand_is_told() -> None:
    (found,) = key_changes(policy_set(acme=f"tenant: acme\nkeys: ['{TWO}']"), policy_set(acme=KEYED))
    assert found.new is not None
    assert found.new.reason.startswith("policies/acme.yaml:2 keys")
