"""A GatewayError as an HTTP answer: status, headers, and the body in the dialect's own envelope.

Decided here: which headers accompany an error. Not decided here: codes and messages (``errors``), the envelope
(``dialects``).
"""

from __future__ import annotations

import math

from gateway.dialects import Dialect
from gateway.errors import GatewayError, GatewayBug
from gateway.types import RequestId


def as_gateway_error(error: BaseException) -> GatewayError:
    """Wrap anything unforeseen, once, in one place."""
    if isinstance(error, GatewayError):
        return error
    return GatewayBug(detail=f"{type(error).__name__}: {error}")


def error_headers(error: GatewayError, request_id: RequestId) -> list[tuple[str, str]]:
    """``x-request-id``, the code, and for retriable errors ``Retry-After`` (whole seconds) with ``retry-after-ms``."""
    headers = [("x-request-id", request_id), ("x-vlmgw-error", error.code)]
    if error.retry_after_s is not None:
        wait_s = max(error.retry_after_s, 0.001)
        headers += [("Retry-After", str(math.ceil(wait_s))), ("retry-after-ms", str(math.ceil(wait_s * 1000)))]
    if error.should_retry is not None:
        # Read by the official OpenAI and Anthropic SDKs before their own rules.
        headers.append(("x-should-retry", "true" if error.should_retry else "false"))
    if error.status == 415:
        headers.append(("Accept-Encoding", "identity"))
    return headers


def error_body(error: GatewayError, dialect: Dialect, request_id: RequestId) -> bytes:
    return dialect.error_body(error, request_id)
