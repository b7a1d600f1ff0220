"""``vlm-gateway engine-sim``: the stand-in engine; its flags are its own (``engine-sim --help``)."""

from __future__ import annotations

import typer

from gateway.simulator.__main__ import main as run_simulator


def engine_sim(context: typer.Context) -> None:
    """Run the engine simulator (vLLM's or SGLang's contract, no GPU)."""
    run_simulator(context.args)
