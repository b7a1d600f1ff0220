"""The commands by name, and how they refuse wrong usage."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gateway import __version__
from gateway.cli.commands import application
from tests.cli.command import COMMANDS, run, start


def test_every_command_is_there_and_explains_itself() -> None:
    listed = {
        command.name or command.callback.__name__ for command in application().registered_commands if command.callback
    }
    assert listed == COMMANDS
    overview = run("--help").out
    assert all(command in overview for command in COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS - {"engine-sim"}))
def test_help(command: str) -> None:
    assert run(command, "--help").code == 0


def test_without_a_command_help_is_shown() -> None:
    assert "Commands" in run().out


def test_wrong_usage_exits_with_2() -> None:
    assert run("fly").code == 2
    assert run("serve", "--no-such-flag").code == 2
    assert run("serve", "--port", "many").code == 2


def test_the_module_is_the_command() -> None:
    for word in ("version", "--version"):
        ran = start(word)
        assert (ran.code, ran.out.strip()) == (0, __version__)


def test_serving_waits_for_no_other_commands_libraries() -> None:
    look = (
        "import sys; from gateway.cli.commands import application; application('serve');"
        "print(*sorted(sys.modules.keys() & {'redis', 'gateway.simulator', 'opentelemetry', 'numpy'}))"
    )
    ran = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == ""
