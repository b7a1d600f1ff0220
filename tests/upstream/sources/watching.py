"""Runs a source and remembers what it told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.upstream.settings import BackendSettings, Found, Source
from gateway.upstream.sources.template import Template


class Heard:
    """Answers (as ``name url``) and failures, in order."""

    def __init__(self) -> None:
        self.answers: list[Found] = []
        self.failures: list[str] = []

    @property
    def names(self) -> list[str]:
        return [backend.backend_name for backend in self.answers[-1]] if self.answers else []

    @property
    def urls(self) -> list[str]:
        return [backend.url for backend in self.answers[-1]] if self.answers else []


@asynccontextmanager
async def heard(source: Source) -> AsyncIterator[Heard]:
    ears = Heard()
    task = asyncio.create_task(source.watch(ears.answers.append, ears.failures.append))
    try:
        yield ears
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def template(*, tls: bool = False) -> Template:
    """Backends of some key; options become the served model, and ``bad`` is refused."""

    def base(options: Mapping[str, str], where: str) -> BackendSettings:
        if "bad" in options:
            raise ValueError(f"{where}: bad: may not be set there")
        models = tuple(options[key] for key in ("models",) if key in options)
        return BackendSettings(f"{'https' if tls else 'http'}://found", api_key="k", models=models)

    return Template(base, tls)
