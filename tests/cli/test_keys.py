"""``hash-key``: a key's hash in the form that the configuration asks for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gateway.api.auth import hash_key
from tests.cli.command import run


def test_a_key_is_hashed() -> None:
    ran = run("hash-key", "abc")
    assert ran.out == f"hash: sha256:{hashlib.sha256(b'abc').hexdigest()}\n"
    assert "set identity.secret" in ran.err


@pytest.mark.parametrize("key", ["", "  "])
def test_an_empty_key_is_none(key: str) -> None:
    ran = run("hash-key", key)
    assert (ran.code, ran.out) == (2, "")
    assert "The key is empty" in ran.err


def test_a_key_is_made() -> None:
    key, hashed = (line.split(": ")[1].strip() for line in run("hash-key").out.splitlines())
    assert hash_key(key) == hashed
    assert run("hash-key").out.splitlines()[0] != f"key:  {key}"
    assert run("hash-key", key).err == ""


def test_where_a_secret_is_configured_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("identity: {secret: of-the-deployment}\n")
    keyed = f"hash: {hash_key('abc', 'of-the-deployment')}\n"
    assert keyed.startswith("hash: hmac-sha256:")
    assert run("hash-key", "abc", "--config", str(config)).out == keyed
    monkeypatch.setenv("VLMGW_IDENTITY_SECRET", "of-the-deployment")
    assert run("hash-key", "abc").out == keyed
    assert run("hash-key", "abc", "--plain").out == f"hash: {hash_key('abc')}\n"
