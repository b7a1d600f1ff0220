"""The port behind exact text tokens: one loaded model per served name, long prompts counted off the loop.

Decided here: what is counted where, and that whatever cannot be counted is no error: the estimate by bytes remains, and
the engine speaks for itself. Not decided here: how (`conversation`, `template`, `tokenizer`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.ports import Body, PromptCount
from gateway.prompts.conversation import Conversation, NotCountable, conversation
from gateway.types import JsonObject, LongString

if TYPE_CHECKING:
    from gateway.prompts.tokenizer import PromptFiles

# A tokenizer takes a millisecond for some kilobytes; more than that is a thread's work, and a thread costs 0.1 ms.
OFF_LOOP_TEXT_BYTES = 4096
# A message without text still is a round of the template's loop.
_ON_LOOP_MESSAGES = 64
_DIALECT = "openai_chat"


class TokenizersMissing(ValueError):
    """A tokenizer is configured and the libraries that read it are not installed."""


class Prompts:
    """Counts prompts of the models that have a tokenizer."""

    def __init__(
        self, tokenizers: Mapping[str, Path], earlier: Prompts | None = None, *, keeps_tokens: bool = False
    ) -> None:
        """Load every tokenizer that ``earlier`` does not have as it is now. ``keeps_tokens``: counts come with the ids.

        Raises `ValueError` naming the setting, file and fault, `TokenizersMissing`.
        """
        self._keeps = keeps_tokens
        self._loaded: dict[str, _Loaded] = {}
        known = {} if earlier is None else {(each.path, each.stamp): each for each in earlier.loaded}
        for library in ("tokenizers", "jinja2") if tokenizers else ():
            if find_spec(library) is None:
                raise TokenizersMissing(
                    f"models.{next(iter(tokenizers))}.tokenizer: {library} is not installed; "
                    "run: pip install 'vlm-gateway[tokenizers]'"
                )
        for name, path in tokenizers.items():
            stamp = _stamp(path)
            self._loaded[name] = known.get((path, stamp)) or _Loaded(path, stamp, _load(name, path))

    @property
    def loaded(self) -> Collection[_Loaded]:
        """What has been read, for the next of its kind to take over."""
        return self._loaded.values()

    def covers(self, model: str, dialect: str) -> bool:
        """Whether a model's prompts can be counted."""
        return model in self._loaded and dialect == _DIALECT

    async def count(self, model: str, body: Body, tree: JsonObject, text_bytes: int) -> PromptCount | None:
        """Tokens of the prompt that the engine will make of this body; ``None`` where only the engine can tell.

        Everything is taken out of ``body`` before the first await, so that it may be closed at any time.
        """
        files = self._loaded[model].files
        spoken = _read(files, body, tree)
        if spoken is None:
            return None
        if text_bytes <= OFF_LOOP_TEXT_BYTES and len(spoken.messages) <= _ON_LOOP_MESSAGES:
            return _counted(files, spoken, keeps=self._keeps)
        return await asyncio.to_thread(_counted, files, spoken, keeps=self._keeps)


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: Path
    stamp: int
    files: PromptFiles


def _load(name: str, path: Path) -> PromptFiles:
    from gateway.prompts.tokenizer import PromptFiles  # noqa: PLC0415  # an optional extra

    try:
        return PromptFiles(path)
    except ValueError as error:
        raise ValueError(f"models.{name}.tokenizer: {error}") from None


def _stamp(path: Path) -> int:
    """When the newest of a tokenizer's files was written; 0 where there is none."""
    try:
        files = path.iterdir() if path.is_dir() else (path,)
        return max((file.stat().st_mtime_ns for file in files if file.is_file()), default=0)
    except OSError:  # loading will say what is wrong
        return 0


def _read(files: PromptFiles, body: Body, tree: JsonObject) -> Conversation | None:
    def resolve(long: LongString) -> str:
        text = json.loads(b'"' + bytes(body.view(long.span.start, long.span.stop)) + b'"', strict=False)
        return str(text)

    try:
        return conversation(tree, resolve, takes_parts=files.template.takes_parts)
    except (NotCountable, ValueError):
        return None


def _counted(files: PromptFiles, spoken: Conversation, *, keeps: bool) -> PromptCount | None:
    template = files.tool_template if spoken.tools else files.template
    prompt = template.render(spoken.messages, spoken.tools, spoken.variables)
    counted = None if prompt is None else files.count(prompt, keeps=keeps)
    if counted is None or counted.image_tokens != spoken.images:
        return None  # a text that spells an image's token, or a template with a placeholder of another kind
    text_tokens = counted.tokens - counted.image_tokens
    return PromptCount(text_tokens, spoken.images, is_certain=spoken.is_certain, raw=counted.raw)
