"""Calls into imagecodecs, whose functions raise whatever fits them: here it becomes one documented error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Undecodable


def call(name: str, decode: Callable[..., Any], data: bytes | NDArray[np.uint8], **options: object) -> Any:
    """Decode. Raises Undecodable (the data is cut or damaged), MemoryError."""
    try:
        return decode(data, **options)
    # What libraries raise for damage; the last is how some say that a damaged header asks for what they do not have.
    except (RuntimeError, ValueError, IndexError, TypeError, OverflowError, NotImplementedError) as error:
        raise Undecodable(f"The {name}'s data is cut or damaged.", detail=str(error)) from error
