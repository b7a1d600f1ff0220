"""The commands by name.

Decided here: what there is, and that a command's own module alone is imported when its name is the first word: `serve`
would else wait for the libraries of all the others, which is half of its start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from gateway import __version__

# name -> the module below gateway.cli that holds it, and the function there
COMMANDS = {
    "serve": ("serve", "serve"),
    "demo": ("demo", "demo"),
    "check": ("check", "check"),
    "doctor": ("inspect", "doctor"),
    "explain": ("inspect", "explain"),
    "estimate": ("estimate", "estimate"),
    "process": ("process", "process"),
    "simulate": ("simulate", "simulate"),
    "adaptive": ("adaptive", "adaptive"),
    "logs": ("logs", "logs"),
    "top": ("top.command", "top"),
    "hash-key": ("keys", "hash_key_command"),
    "engine-sim": ("engine_sim", "engine_sim"),
}
# It has flags of its own, which are not read here.
_HANDED_ON = {
    "engine-sim": {"allow_extra_args": True, "ignore_unknown_options": True},
}


def _tell_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


def application(only: str | None = None) -> typer.Typer:
    """The command line: all commands, or one of them."""
    app = typer.Typer(
        name="vlm-gateway",
        help="A reverse proxy that makes image requests to vLLM and SGLang cheap, fair and safe.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    for name, (module, function) in COMMANDS.items():
        if only in {None, name}:
            settings = _HANDED_ON.get(name)
            add = app.command(name=name, context_settings=settings, add_help_option=settings is None)
            add(getattr(import_module(f"gateway.cli.{module}"), function))
    app.command()(version)
    app.callback()(_first)
    return app


def _first(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version.")
    ] = False,
) -> None:
    """What stands before a command."""


def version() -> None:
    """Print the version."""
    typer.echo(__version__)
