from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.confine.bpf import Action, Clause, Filter, Rule, assemble
from tests.media.confine.bpf_machine import run

ARCH, FOREIGN, LIMIT = 0xC000_003E, 0x4000_0000, 300
words = st.integers(0, 0xFFFF_FFFF)
few = st.integers(0, 7)
clauses = st.builds(
    Clause, st.integers(0, 5), st.lists(few, min_size=1, max_size=4).map(tuple), st.sampled_from([0xFFFF_FFFF, 5, 6])
)
rules = st.builds(
    Rule,
    st.integers(0, 9),
    st.sampled_from(Action),
    st.lists(clauses, max_size=3).map(tuple),
    st.sampled_from(Action),
)
filters = st.builds(
    Filter, st.just(ARCH), st.lists(rules, max_size=8).map(tuple), st.just(LIMIT), st.sampled_from([FOREIGN, None])
)
numbers = st.one_of(st.integers(0, 10), st.sampled_from([LIMIT - 1, LIMIT, FOREIGN - 1, FOREIGN]), words)


@given(filters, st.sampled_from([ARCH, 0xC000_00B7]), numbers, st.lists(few, min_size=6, max_size=6))
def test_the_program_decides_as_its_rules_say(filter_: Filter, arch: int, number: int, args: list[int]) -> None:
    assert run(assemble(filter_), arch, number, args) == filter_.decide(arch, number, args)


def test_both_halves_of_an_argument_can_be_asked() -> None:
    rule = Rule(3, Action.ALLOW, (Clause(1, (0,)), Clause(1, (2,), high=True)))
    program = assemble(Filter(ARCH, (rule,), LIMIT))
    assert run(program, ARCH, 3, [0, 2 << 32, 0, 0, 0, 0]) == Action.ALLOW
    assert run(program, ARCH, 3, [0, 2, 0, 0, 0, 0]) == Action.DENY


def test_an_instruction_is_eight_bytes_as_the_kernel_wants_it() -> None:
    program = assemble(Filter(ARCH, (), LIMIT))
    assert len(program) % 8 == 0
    assert struct.unpack_from("=HBBI", program) == (0x20, 0, 0, 4)


def test_what_the_kernel_would_not_take_is_refused() -> None:
    many = tuple(Clause(0, tuple(range(60))) for _ in range(6))
    with pytest.raises(ValueError, match="one jump"):
        assemble(Filter(ARCH, (Rule(1, Action.ALLOW, many),), LIMIT))
    with pytest.raises(ValueError, match="instructions"):
        assemble(Filter(ARCH, tuple(Rule(number, Action.ALLOW) for number in range(2_100)), LIMIT))
