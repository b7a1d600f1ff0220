"""The headers that accompany an error.

Decided here: when to come back, and whether at all. Not decided here: codes and messages (``errors``), the envelope
(``dialects``).
"""

from __future__ import annotations

import math

from gateway.errors import GatewayError, MethodNotAllowed
from gateway.types import RequestId


def error_headers(error: GatewayError, request_id: RequestId) -> list[tuple[str, str]]:
    """``x-request-id``, the code, and for retriable errors ``Retry-After`` (whole seconds) with ``retry-after-ms``."""
    headers = [("x-request-id", request_id), ("x-vlmgw-error", error.code)]
    headers += error.headers
    if error.rule is not None:
        headers.append(("x-vlmgw-rule", error.rule))
    if error.retry_after_s is not None:
        wait_s = max(error.retry_after_s, 0.001)
        headers += [("Retry-After", str(math.ceil(wait_s))), ("retry-after-ms", str(math.ceil(wait_s * 1000)))]
    if error.should_retry is not None:
        # Read by the official OpenAI and Anthropic SDKs before their own rules.
        headers.append(("x-should-retry", "true" if error.should_retry else "false"))
    if isinstance(error, MethodNotAllowed):
        headers.append(("Allow", ", ".join(error.allowed)))
    if error.status == 415:
        headers.append(("Accept-Encoding", "identity"))
    return headers
