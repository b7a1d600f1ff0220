"""Values that every request makes: frozen for whoever writes code, plain for the interpreter.

A frozen dataclass sets each field through ``object.__setattr__``, some 80 ns instead of 3 (CPython 3.11), and a text
request makes about 240 such fields: 8 % of its CPU. So what is made per request is declared with ``per_request`` in
place of ``dataclass``: mypy holds everybody to the frozen dataclass that it says it is, and at run time nothing does.

Decided here: that trade, for the values of the hot path alone. What is made once stays a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as per_request
else:
    from dataclasses import dataclass

    def per_request(*, frozen, slots):
        """``dataclass`` with equality and a hash over all fields, as a frozen one has them."""
        assert frozen, "what goes through the stages does not change"
        return dataclass(slots=slots, unsafe_hash=True)


__all__ = ["per_request"]
