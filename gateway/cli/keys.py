"""``vlm-gateway hash-key``: what stands in a policy's ``keys`` for an API key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.api.auth import KEY_PREFIX, hash_key, make_key
from gateway.cli.output import fail, say
from gateway.cli.serve import settings_from

_CHOSEN = (
    "note: plain SHA-256 protects only random keys, such as this command makes without an argument; "
    "for one that a person chose set identity.secret"
)


def hash_key_command(
    key: Annotated[str | None, typer.Argument(help="A key to hash; a new one is made without it.")] = None,
    config: Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Plain SHA-256, also where a secret is configured.")] = False,
) -> None:
    """Make an API key, or hash one: under identity.secret where that is configured, else with plain SHA-256.

    Keys that people choose themselves need the secret; for keys made here both forms are as good.
    """
    if key is not None and not key.strip():
        raise fail("The key is empty, and no request can present it; without an argument a new one is made.", code=2)
    secret = None if plain else settings_from(config, None, {}).identity.secret
    if key is None:
        key, hashed = make_key(secret)
        typer.echo(f"key:  {key}")
    else:
        hashed = hash_key(key, secret)
        if secret is None and not key.startswith(KEY_PREFIX):
            say(_CHOSEN)
    typer.echo(f"hash: {hashed}")
