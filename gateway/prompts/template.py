"""Chat templates, applied the way transformers applies them (`utils/chat_template_utils.py` of 5.19.0).

Decided here: the Jinja environment (sandboxed and immutable, blocks trimmed, loop controls, ``generation`` blocks,
``tojson`` without HTML escapes, ``raise_exception``, ``strftime_now``), and whether a template takes a message's
content as a list of parts or as one string. Not decided here: which messages it is given (`conversation`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_PROBE = "a text that no template holds by itself"


_NO_VARIABLES: Mapping[str, Any] = MappingProxyType({})


class TemplateRefused(Exception):
    """Raised inside a template by its own ``raise_exception``; the engine will say so in its own words."""


class GenerationBlocks(Extension):
    """``{% generation %}`` marks the answer's tokens for training; its body is printed as it is."""

    tags = {"generation"}  # noqa: RUF012  # jinja's own way of declaring tags

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class PromptTemplate:
    """One compiled template with the special tokens it names (``bos_token`` ...)."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Raises `ValueError` for a template that Jinja cannot read."""
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationBlocks, "jinja2.ext.loopcontrols"],
            autoescape=False,  # it makes a prompt, not a page
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = time.strftime
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template cannot be read: {error}") from None
        self._special_tokens = dict(special_tokens)
        self.takes_parts = self._probe()

    def render(
        self, messages: list[dict[str, Any]], tools: list[Any] | None, variables: Mapping[str, Any] = _NO_VARIABLES
    ) -> str | None:
        """The prompt as text; ``None`` where the template refuses these messages or fails on them."""
        given = {"tools": tools, "documents": None, "add_generation_prompt": True, **self._special_tokens, **variables}
        try:
            return self._template.render(given | {"messages": messages})
        except Exception:  # noqa: BLE001  # templates are programs: they fail in every way there is
            return None

    def _probe(self) -> bool:
        """Whether a list of parts comes out as its text: else the template prints or refuses the list itself."""
        message = {"role": "user", "content": [{"type": "text", "text": _PROBE}]}
        shown = self.render([message], None) or ""
        return _PROBE in shown and f"'{_PROBE}'" not in shown and f'"{_PROBE}"' not in shown


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002  # the filter's parameters as templates spell them
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise TemplateRefused(message)
