"""Templates behave as transformers has them: trimming, filters, refusals, and nothing reachable from a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.prompts.template import PromptTemplate
from tests.prompts.examples import STRING_TEMPLATE, TEMPLATE

HELLO: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Hi <&>"}]}]


def rendered(source: str, messages: list[dict[str, Any]] | None = None, **variables: Any) -> str | None:
    return PromptTemplate(source, {"bos_token": "<s>"}).render(messages or HELLO, None, variables)


def test_a_conversation_ends_with_the_opening_of_the_answer() -> None:
    assert rendered(TEMPLATE) == "<|im_start|>user\nHi <&><|im_end|>\n<|im_start|>assistant\n"
    thinking = rendered(TEMPLATE, enable_thinking=False)
    assert thinking is not None
    assert thinking.endswith("<think>\n\n</think>\n\n")
    closed = rendered(TEMPLATE, add_generation_prompt=False)
    assert closed == "<|im_start|>user\nHi <&><|im_end|>\n"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}x", "<s>x"),
        ("{% if true %}\nline\n{% endif %}\n", "line\n"),
        ("   {% if true %}kept{% endif %}", "kept"),
        ("{{ {'ü': '<a>', 'b': [1, 2]} | tojson }}", '{"ü": "<a>", "b": [1, 2]}'),
        ("{{ {'b': 1, 'a': 2} | tojson(indent=1, sort_keys=true) }}", '{\n "a": 2,\n "b": 1\n}'),
        ("{% generation %}answer{% endgeneration %}!", "answer!"),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        ("{{ strftime_now('%%') }}", "%"),
        ("{{ tools is none }}", "True"),
        ("{% set ns = namespace(n=0) %}{% set ns.n = 4 %}{{ ns.n }}", "4"),
    ],
)
def test_what_templates_use(source: str, text: str) -> None:
    assert rendered(source) == text


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('System role not supported') }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ 1 / 0 }}",
        "{{ messages[0].nothing.at_all }}",
    ],
)
def test_what_a_template_refuses_or_may_not_do_is_no_prompt(source: str) -> None:
    assert rendered(source) is None


def test_a_template_that_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        PromptTemplate("{% if %}", {})


def test_whether_content_is_taken_as_parts_is_found_out() -> None:
    assert PromptTemplate(TEMPLATE, {}).takes_parts
    assert not PromptTemplate(STRING_TEMPLATE, {}).takes_parts
    assert not PromptTemplate("{{ messages[0].content }}", {}).takes_parts
    assert not PromptTemplate("{{ messages[0].content | tojson }}", {}).takes_parts


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) | map('string') %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{{ 'x' * 3000000000 }}",
        "{{ 3000000000 * [1] }}",
        "{{ 10 ** 10 ** 8 }}",
        "{{ '%1500000000d' % 1 }}",
        "{% set ns = namespace(x='xx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='xx') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set x = 'x' * 1000000 %}{% for i in range(99999) %}{{ x }}{% endfor %}",
    ],
)
def test_a_template_that_would_not_end_or_fill_the_memory_is_given_up(source: str) -> None:
    assert rendered(source) is None


def test_what_is_counted_cannot_be_renamed_by_a_request() -> None:
    source = "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ '-' * 3 }}{{ 2 ** 3 + 7 % 4 }}{% endfor %}"
    assert rendered(source, HELLO * 2, **{" steps": None}) == "1/2---112/2---11"


@pytest.mark.parametrize("source", ["{% for a in [1] %}" * 30 + "{% endfor %}" * 30, "{{ " + "(" * 5000])
def test_a_template_beyond_python_itself_cannot_be_read(source: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        PromptTemplate(source, {})
