"""The commands by name."""

from __future__ import annotations

import typer

from gateway import __version__
from gateway.cli.adaptive import adaptive
from gateway.cli.check import check
from gateway.cli.demo import demo
from gateway.cli.estimate import estimate
from gateway.cli.inspect import doctor, explain
from gateway.cli.keys import hash_key_command
from gateway.cli.logs import logs
from gateway.cli.process import process
from gateway.cli.serve import serve
from gateway.cli.simulate import simulate
from gateway.cli.simulator import engine_sim
from gateway.cli.top.command import top

app = typer.Typer(
    name="vlm-gateway",
    help="A reverse proxy that makes image requests to vLLM and SGLang cheap, fair and safe.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for command in (serve, demo, check, doctor, explain, estimate, process, simulate, adaptive, logs, top):
    app.command()(command)
app.command(name="hash-key")(hash_key_command)
app.command(
    name="engine-sim",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)(engine_sim)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
