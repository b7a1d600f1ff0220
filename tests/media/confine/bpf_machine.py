"""The part of the classic BPF machine that our programs use, so that a filter can be asked without a kernel."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def run(program: bytes, arch: int, number: int, args: Sequence[int]) -> int:
    """What a program returns for one system call (linux/seccomp.h: struct seccomp_data)."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *args)
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")
