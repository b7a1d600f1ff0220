from __future__ import annotations

import re
from pathlib import Path

from gateway.media.confine.machines import FIRST_UNKNOWN, MACHINES

# Where Debian's linux-libc-dev, which the compiler needs, has the kernel's own tables.
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


def numbers_in(header: Path) -> dict[str, int]:
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE)
    return {name: int(number) for name, number in reversed(found)}


def test_numbers_are_those_of_this_systems_headers() -> None:
    for name, path in HEADERS.items():
        header = Path(path)
        if not header.exists():  # another machine's, or a system without a compiler
            continue
        known = numbers_in(header)
        known.setdefault("newfstatat", known.get("fstatat", -1))
        ours = MACHINES[name].numbers
        assert {call: known.get(call) for call in ours} == ours
        assert {call for call in known if known[call] >= FIRST_UNKNOWN} & ours.keys() == set()


def test_no_two_calls_share_a_number() -> None:
    for machine in MACHINES.values():
        assert len(set(machine.numbers.values())) == len(machine.numbers)
        assert max(machine.numbers.values()) < FIRST_UNKNOWN
