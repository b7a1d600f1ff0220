"""What a file may say of its keys."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.keys import Key, Keys
from gateway.policy.values import BadValue
from tests.policy.examples import node, policy_set, set_problems

HASH = "sha256:" + "0f" * 32
KEYED = "hmac-sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (f'["{HASH}"]', (Key(HASH),)),
        (f'["{HASH}", "{KEYED}"]', (Key(HASH), Key(KEYED))),
        (f"[{{hash: '{HASH}', name: ci, task: ocr}}]", (Key(HASH, "ci", None, "ocr"),)),  # type: ignore[arg-type] # a name
        (f"[{{hash: '{HASH}', expires: 1970-01-02}}]", (Key(HASH, None, 172_800.0),)),
        (f"[{{hash: '{HASH}', expires: '1970-01-02T01:00:00+01:00'}}]", (Key(HASH, None, 86_400.0),)),
        ("[]", ()),
    ],
)
def test_a_key_is_a_hash_or_more(text: str, keys: tuple[Key, ...]) -> None:
    assert Keys().parse(node(text)) == keys
    assert [key.needs_secret for key in keys] == [key.hash == KEYED for key in keys]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one", "expected a list of key hashes"),
        ("[sk-secret]", "keys are never written in the clear"),
        (f"[{HASH.upper()}]", "64 lower-case hex digits"),
        ("[[a]]", "64 lower-case hex digits"),
        ("[{name: ci}]", "a key needs its hash"),
        (f"[{{hash: '{HASH}', expire: 2027-01-01}}]", "did you mean expires"),
        (f"[{{hash: '{HASH}', expires: soon}}]", "expected a date"),
        (f"[{{hash: '{HASH}', expires: '2027-01-01T10:00:00'}}]", "with its zone"),
        (f"[{{hash: '{HASH}', expires: 5}}]", "expected a date"),
        (f"[{{hash: '{HASH}', name: 'a b'}}]", "a name has"),
        (f"[{{hash: '{HASH}', task: [ocr]}}]", "a name has"),
    ],
)
def test_a_mistake_is_named(text: str, words: str) -> None:
    with pytest.raises(BadValue) as caught:
        Keys().parse(node(text))
    assert words in str(caught.value)


def test_a_key_in_the_clear_is_not_repeated() -> None:
    with pytest.raises(BadValue) as caught:
        Keys().parse(node("[sk-very-secret, {hash: sk-very-secret}]"))
    assert "very-secret" not in str(caught.value)
    assert [mistake.part for mistake in caught.value.mistakes] == ["0", "1.hash"]


def test_a_keys_task_must_be_one_of_the_tenants() -> None:
    text = f"tenant: acme\ntasks: {{ocr: {{}}}}\ndefault_task: ocr\nkeys: [{{hash: '{HASH}', task: ocd}}]"
    (problem,) = set_problems(acme=text)
    assert "task ocd is not among the tasks ocr; did you mean ocr?" in str(problem)
    policy_set(acme=text.replace("ocd", "ocr"))


def test_one_key_opens_for_one_tenant() -> None:
    problems = set_problems(a=f'tenant: a\nkeys: ["{HASH}"]', b=f"tenant: b\nkeys: [{{hash: '{HASH}', name: again}}]")
    assert "is listed already in policies/a.yaml:2 keys" in str(problems[0])


@given(st.datetimes())
def test_any_moment_with_a_zone_is_one(moment: object) -> None:
    (key,) = Keys().parse(node(f"[{{hash: '{HASH}', expires: '{moment}+00:00'}}]"))
    assert isinstance(key.expires_s, float)


def test_the_hash_of_an_empty_key_is_refused() -> None:
    with pytest.raises(BadValue) as refused:
        Keys().parse(node(f"['sha256:{hashlib.sha256().hexdigest()}']"))
    (mistake,) = refused.value.mistakes
    assert (mistake.part, mistake.message) == ("0", "is the hash of an empty key, which no request can present")
