"""A model's own tokenizer and chat template, read from its files.

Decided here: which files are looked at and in which order (a ``chat_template.jinja`` before ``chat_template.json``
before ``tokenizer_config.json``, as transformers 5.19.0), and which token stands for an image. Not decided here: which
model the files belong to (the operator says so).
"""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from gateway.prompts.template import PromptTemplate
from gateway.routing.blocks.prompt import TOKEN_TYPE, RawPrompt

# What templates print for one image, in the families that print one token: it is replaced by the image's own.
_IMAGE_TOKENS = (
    "<|image_pad|>", "<|media_pad|>", "<|image|>", "<image>", "[IMG]", "<image_soft_token>", "<start_of_image>",
    "<|IMAGE_PLACEHOLDER|>", "<|imgpad|>", "<IMG_CONTEXT>", "<|patch|>",
)  # fmt: skip
# Real ones have some hundred kilobytes, where a vocabulary's added tokens are listed in them.
_LARGEST_BYTES = 16 << 20
_NAMED_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "image_token", "boi_token", "eoi_token")


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of a prompt, and how many of them stand for an image; with the prompt itself, if that was asked for."""

    tokens: int
    image_tokens: int
    raw: RawPrompt | None = field(default=None, compare=False, repr=False)


class PromptFiles:
    """Tokenizer and template of one served model. Counting is thread-safe."""

    def __init__(self, path: Path) -> None:
        """Load a directory, or a ``tokenizer.json`` with its siblings. Raises `ValueError` naming the file."""
        folder = path if path.is_dir() else path.parent
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise ValueError(f"{file}: there is no such file")
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  # plain Exception for a file that is none, and Rust's panics
            raise ValueError(f"{file}: is no tokenizer: {error}") from None
        settings = _object(folder / "tokenizer_config.json")
        special = {name: text for name in _NAMED_TOKENS if (text := _token_text(settings.get(name))) is not None}
        default, with_tools = _template_source(folder, settings)
        if default is None:
            raise ValueError(f"{folder}: has no chat template (chat_template.jinja or tokenizer_config.json)")
        self.template = _compiled(folder, default, special)
        self.tool_template = self.template if with_tools is None else _compiled(folder, with_tools, special)
        ids = (self._tokenizer.token_to_id(token) for token in _IMAGE_TOKENS)
        self._image_ids = frozenset(token for token in ids if token is not None)

    def count(self, prompt: str, *, keeps: bool = False) -> Counted | None:
        """Tokens of a rendered prompt, special ones only where the template wrote them; ``None`` if it is no text.

        ``keeps``: with their ids and the places of images, for who hashes the prompt as engines do.
        """
        try:
            ids = self._tokenizer.encode(prompt, add_special_tokens=False).ids
        except (TypeError, UnicodeError):  # a lone surrogate is no text that the library takes
            return None
        if not keeps:
            return Counted(len(ids), sum(token in self._image_ids for token in ids))
        places = tuple(at for at, token in enumerate(ids) if token in self._image_ids)
        return Counted(len(ids), len(places), RawPrompt(array(TOKEN_TYPE, ids), places))


def _compiled(folder: Path, source: str, special: dict[str, str]) -> PromptTemplate:
    try:
        return PromptTemplate(source, special)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None


def _text(file: Path) -> str:
    """A file beside the tokenizer. Raises `ValueError` naming it."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise ValueError(f"{file}: is larger than {_LARGEST_BYTES} bytes")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file}: is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from None


def _object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{file}: must hold an object")  # noqa: TRY004  # a fault of the file, not of the caller
    return found


def _token_text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _template_source(folder: Path, settings: dict[str, Any]) -> tuple[str | None, str | None]:
    """The default template, and the one for requests with tools where there is another."""
    plain = folder / "chat_template.jinja"
    if plain.is_file():
        return _text(plain), None
    found = _object(folder / "chat_template.json").get("chat_template") or settings.get("chat_template")
    if isinstance(found, list):
        named = {str(entry.get("name")): entry.get("template") for entry in found if isinstance(entry, dict)}
        default, tools = named.get("default"), named.get("tool_use")
        return default if isinstance(default, str) else None, tools if isinstance(tools, str) else None
    return found if isinstance(found, str) else None, None
