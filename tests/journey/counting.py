"""The port that counts prompts, as a fake."""

from __future__ import annotations

from gateway.ports import Body, PromptCount
from gateway.types import JsonObject
from tests.journey.driver import suspend


class FakePrompts:
    """Counts every prompt the same; ``count`` None = only the engine can tell."""

    def __init__(self, counted: PromptCount | None) -> None:
        self._counted = counted

    def covers(self, model: str, dialect: str) -> bool:
        return dialect == "openai_chat"

    async def count(self, model: str, body: Body, tree: JsonObject, text_bytes: int) -> PromptCount | None:
        await suspend("prompts.count")
        return self._counted
