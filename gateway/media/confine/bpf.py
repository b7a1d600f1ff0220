"""A small assembler for the classic BPF programs that seccomp runs. Pure.

Decided here: how rules become instructions. Not decided here: which rules (``rules``). A program checks the
architecture, then walks the rules in order; a rule that needs no argument is decided by the number alone, which lets
Linux 5.11 and later remember the answer in a bitmap and skip the program. Encodings: linux/filter.h, linux/seccomp.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# struct seccomp_data: int nr, u32 arch, u64 instruction_pointer, u64 args[6]; both machines are little-endian.
_NUMBER_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16
_WORD = 0xFFFF_FFFF
_MAX_JUMP = 255
# BPF_MAXINSNS.
_MAX_INSTRUCTIONS = 4096


class Action(IntEnum):
    """What the kernel does with a call: SECCOMP_RET_* with errno in the low half."""

    ALLOW = 0x7FFF_0000
    DENY = 0x0005_0000 | 1  # EPERM: the library may cope
    ABSENT = 0x0005_0000 | 38  # ENOSYS: glibc falls back to an older call
    KILL = 0x8000_0000  # the whole process, by SIGSYS


@dataclass(frozen=True, slots=True)
class Clause:
    """Holds when the masked low half (or ``high`` half) of an argument is one of ``values``."""

    arg: int
    values: tuple[int, ...]
    mask: int = _WORD
    high: bool = False

    def holds(self, args: Sequence[int]) -> bool:
        """What the instructions decide, in Python, for the tests."""
        word = (args[self.arg] >> (32 if self.high else 0)) & _WORD
        return word & self.mask in self.values


@dataclass(frozen=True, slots=True)
class Rule:
    """``action`` for a call when every clause holds, else ``otherwise``."""

    number: int
    action: Action
    clauses: tuple[Clause, ...] = ()
    otherwise: Action = Action.DENY


@dataclass(frozen=True, slots=True)
class Filter:
    """Rules by number, first match decides; ``limit`` and above are newer than these rules: ABSENT, or KILL above
    ``foreign``, where another calling convention begins. Everything else is DENY."""

    arch: int
    rules: tuple[Rule, ...]
    limit: int
    foreign: int | None = None

    def decide(self, arch: int, number: int, args: Sequence[int]) -> Action:
        """What the program answers, in Python, for the tests."""
        if arch != self.arch or (self.foreign is not None and number >= self.foreign):
            return Action.KILL
        if number >= self.limit:
            return Action.ABSENT
        rule = next((rule for rule in self.rules if rule.number == number), None)
        if rule is None:
            return Action.DENY
        return rule.action if all(clause.holds(args) for clause in rule.clauses) else rule.otherwise


def assemble(filter_: Filter) -> bytes:
    """The program as an array of struct sock_filter. Raises ValueError for one that the kernel would not take."""
    program = [
        _op(_LOAD_WORD, _ARCH_AT),
        _jump(_JUMP_EQUAL, filter_.arch, 1, 0),
        _op(_RETURN, Action.KILL),
        _op(_LOAD_WORD, _NUMBER_AT),
    ]
    if filter_.foreign is not None:
        program += _when(_JUMP_AT_LEAST, filter_.foreign, [_op(_RETURN, Action.KILL)])
    program += _when(_JUMP_AT_LEAST, filter_.limit, [_op(_RETURN, Action.ABSENT)])
    for rule in filter_.rules:
        program += _when(_JUMP_EQUAL, rule.number, list(_body(rule)))
    program.append(_op(_RETURN, Action.DENY))
    if len(program) > _MAX_INSTRUCTIONS:
        raise ValueError(f"a filter of {len(program)} instructions")
    return b"".join(program)


def _body(rule: Rule) -> Iterable[bytes]:
    for clause in rule.clauses:
        yield _op(_LOAD_WORD, _ARGS_AT + 8 * clause.arg + (4 if clause.high else 0))
        if clause.mask != _WORD:
            yield _op(_AND, clause.mask)
        for left, value in zip(range(len(clause.values), 0, -1), clause.values, strict=True):
            yield _jump(_JUMP_EQUAL, value, left, 0)  # over the other values and the refusal behind them
        yield _op(_RETURN, rule.otherwise)
    yield _op(_RETURN, rule.action)


def _when(jump: int, value: int, body: Sequence[bytes]) -> list[bytes]:
    """``body``, which ends with a return, where the comparison holds."""
    return [_jump(jump, value, 0, len(body)), *body]


def _op(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    if max(if_true, if_false) > _MAX_JUMP:
        raise ValueError("a rule with more clauses than one jump can pass")
    return struct.pack("=HBBI", code, if_true, if_false, value)
