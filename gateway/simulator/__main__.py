"""`python -m gateway.simulator`: the flags are the fields of SimulatorSettings."""

import argparse
import dataclasses
import sys
import types
import typing
from collections.abc import Sequence

from gateway.simulator.server import serve
from gateway.simulator.settings import SettingsError, SimulatorSettings


def parse(argv: Sequence[str]) -> SimulatorSettings:
    """Settings from a command line. Exits with 2 and a message for a flag or a value that is not understood."""
    parser = argparse.ArgumentParser(prog="engine-sim", description="A stand-in for vLLM or SGLang without a GPU.")
    kinds = typing.get_type_hints(SimulatorSettings)
    for entry in dataclasses.fields(SimulatorSettings):
        flag = entry.metadata.get("flag", "--" + entry.name.replace("_", "-"))
        kind, help_text = _plain(kinds[entry.name]), f"{entry.metadata['help']} (default: {entry.default})"
        if kind is bool:
            action = argparse.BooleanOptionalAction
            parser.add_argument(flag, dest=entry.name, action=action, default=entry.default, help=help_text)
        else:
            parser.add_argument(flag, dest=entry.name, type=kind, default=entry.default, help=help_text)
    try:
        return SimulatorSettings(**vars(parser.parse_args(argv)))
    except SettingsError as error:
        parser.error(str(error))


def _plain(kind: object) -> typing.Any:
    """`int` for `int | None`: the callable that reads the flag's text."""
    if isinstance(kind, types.UnionType):
        return next(option for option in typing.get_args(kind) if option is not type(None))
    return kind


def main(argv: Sequence[str] | None = None) -> None:
    """Run the simulator with the flags in `argv`, the command line when None."""
    serve(parse(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    main()
