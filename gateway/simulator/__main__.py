"""`python -m gateway.simulator`: the flags are the fields of SimulatorSettings."""

import argparse
import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Sequence

from gateway.simulator.server import serve
from gateway.simulator.settings import SettingsError, SimulatorSettings


def parse(argv: Sequence[str]) -> SimulatorSettings:
    """Settings from a command line. Exits with 2 and a message for a flag or a value that is not understood."""
    parser = argparse.ArgumentParser(
        prog="vlm-gateway engine-sim", description="A stand-in for vLLM or SGLang without a GPU."
    )
    kinds = typing.get_type_hints(SimulatorSettings)
    for entry in dataclasses.fields(SimulatorSettings):
        flag = entry.metadata.get("flag", "--" + entry.name.replace("_", "-"))
        kind, help_text = _plain(kinds[entry.name]), f"{entry.metadata['help']} (default: {entry.default})"
        if kind is bool:
            action = argparse.BooleanOptionalAction
            parser.add_argument(flag, dest=entry.name, action=action, default=entry.default, help=help_text)
        else:
            parser.add_argument(
                flag, dest=entry.name, type=_reader(kind), default=entry.default, help=help_text, metavar=_words(kind)
            )
    try:
        return SimulatorSettings(**vars(parser.parse_args(argv)))
    except SettingsError as error:
        parser.error(str(error))


def _plain(kind: object) -> typing.Any:
    """`int` for `int | None`: the callable that reads the flag's text."""
    if isinstance(kind, types.UnionType):
        return next(option for option in typing.get_args(kind) if option is not type(None))
    return kind


def _words(kind: object) -> str | None:
    """What `--help` shows as the value: an enumeration's words, else argparse's own choice."""
    return "{" + ",".join(kind) + "}" if isinstance(kind, enum.EnumMeta) else None


def _reader(kind: typing.Any) -> typing.Any:
    """The callable that reads a flag's text; for an enumeration one whose refusal names the words."""
    words = _words(kind)
    if words is None:
        return kind

    def read(text: str) -> object:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {words}") from None

    return read


def main(argv: Sequence[str] | None = None) -> None:
    """Run the simulator with the flags in `argv`, the command line when None. Exits with 1 on a taken address."""
    settings = parse(sys.argv[1:] if argv is None else argv)
    try:
        serve(settings)
    except OverflowError:
        sys.exit(f"engine-sim: --port {settings.port}: it must be between 0 and 65535")
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        sys.exit(f"engine-sim: cannot listen on {where}: {error.strerror or error}; --port 0 takes a free port")


if __name__ == "__main__":
    main()
