"""Chat templates, applied the way transformers applies them (`utils/chat_template_utils.py` of 5.19.0).

Decided here: the Jinja environment (sandboxed and immutable, blocks trimmed, loop controls, ``generation`` blocks,
``tojson`` without HTML escapes, ``raise_exception``, ``strftime_now``), how much a template may do before it is given
up, and whether it takes a message's content as a list of parts or as one string. Not decided here: which messages it is
given (`conversation`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Names that no template can spell: its own have neither blanks nor commas.
_STEPS, _COUNTED, _MEASURED = " steps", " counted", " measured"
# Loop steps and calls of one rendering: far beyond any real conversation, and a second rather than for ever.
_MOST_STEPS, _STEPS_OF_CALL = 250_000, 4
# Characters of a prompt, and of any text that an operator makes.
_MOST_CHARACTERS = 1 << 24
_MOST_EXPONENT = 64
_WIDE = re.compile(r"%[^%a-zA-Z]*(\d{6}|\*)")

_PROBE = "a text that no template holds by itself"


_NO_VARIABLES: Mapping[str, Any] = MappingProxyType({})


class TemplateRefused(Exception):
    """Raised inside a template by its own ``raise_exception``; the engine will say so in its own words."""


class TemplateTooLong(Exception):
    """A template that loops, calls itself or writes beyond every conversation."""


class _Steps:
    """What one rendering may still do."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TemplateTooLong


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates end: every loop and call is counted, and no operator makes a value of a gigabyte."""

    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """What may be called is the sandbox's to say; a call costs as much as some steps of a loop."""
        _steps_of(context).take(_STEPS_OF_CALL)
        return super().call(context, called, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator, unless what it makes has a length beyond every prompt."""
        if _made_length(operator, left, right) > _MOST_CHARACTERS:
            raise TemplateTooLong
        return super().call_binop(context, operator, left, right)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,  # noqa: FBT001, FBT002  # jinja's own hook
    ) -> str:
        for loop in list(source.find_all(nodes.For)):
            loop.iter = self._filtered(loop.iter, _COUNTED)
        for kept in list(source.find_all(nodes.Assign)):
            kept.node = self._filtered(kept.node, _MEASURED)
        return super()._generate(source, name, filename, defer_init)

    def _filtered(self, node: nodes.Node, name: str) -> nodes.Node:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno).set_environment(self)


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
        environment = BoundedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationBlocks, "jinja2.ext.loopcontrols"],
            autoescape=False,  # it makes a prompt, not a page
        )
        environment.filters |= {"tojson": _tojson, _COUNTED: _counted, _MEASURED: _measured}
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = time.strftime
        try:
            self._template = environment.from_string(source)
        except (TemplateError, SyntaxError, RecursionError, ValueError, ArithmeticError, MemoryError) as error:
            # Python compiles what Jinja makes of it, and has limits of its own: nesting, digits.
            raise ValueError(f"the chat template cannot be read: {error}") from None
        self._special_tokens = dict(special_tokens)
        self.takes_parts = self._probe()

    def render(
        self, messages: list[dict[str, Any]], tools: list[Any] | None, variables: Mapping[str, Any] = _NO_VARIABLES
    ) -> str | None:
        """The prompt as text; ``None`` where the template refuses these messages or fails on them."""
        given = {"tools": tools, "documents": None, "add_generation_prompt": True, **self._special_tokens, **variables}
        written, length = [], 0
        try:
            for text in self._template.generate(given | {"messages": messages, _STEPS: _Steps()}):
                length += len(text)
                if length > _MOST_CHARACTERS:
                    return None
                written.append(text)
        except Exception:  # noqa: BLE001  # templates are programs: they fail in every way there is
            return None
        return "".join(written)

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


def _steps_of(context: Context) -> _Steps:
    steps = context.get(_STEPS)
    assert isinstance(steps, _Steps), "every rendering is given its steps"
    return steps


@pass_context
def _counted(context: Context, entries: Iterable[Any]) -> Iterable[Any]:
    """What a loop runs over, its steps taken in advance where their number is known."""
    steps = _steps_of(context)
    if isinstance(entries, Sized):
        steps.take(len(entries))
        return entries
    return _taking(entries, steps)


def _taking(entries: Iterable[Any], steps: _Steps) -> Iterator[Any]:
    for entry in entries:
        steps.take(1)
        yield entry


def _measured(value: Any) -> Any:
    """What a template keeps in a variable: doubled in a loop, a text would soon fill the memory."""
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        raise TemplateTooLong
    return value


def _made_length(operator: str, left: Any, right: Any) -> int:
    """How long the text or list is that an operator would make; 0 for numbers."""
    if operator == "**":
        return 0 if abs(right) <= _MOST_EXPONENT and abs(left) <= _MOST_CHARACTERS else _MOST_CHARACTERS + 1
    if operator == "%":
        return _MOST_CHARACTERS + 1 if isinstance(left, str) and _WIDE.search(left) else 0
    long, other = (left, right) if isinstance(left, Sized) else (right, left)
    if not isinstance(long, Sized):
        return 0
    if operator == "*":
        return len(long) * other if isinstance(other, int) else 0
    return len(long) + (len(other) if isinstance(other, Sized) else 0)


def _refuse(message: str) -> None:
    raise TemplateRefused(message)
