"""Every way a request can fail, as one tree; docs/errors.md, metric labels and envelopes come from it.

    GatewayError                    code, status, blame, public message, private detail, Retry-After
    |- Rejected                     blame client: the request itself is at fault, sending it again will not help
    |   |- Malformed 400            NotJson, TooComplex, InvalidRequest, UnsupportedEncoding 415
    |   |- Unauthenticated 401, NotPermitted 403, ModelNotFound 404, RouteNotFound 404, ResponseNotFound 404
    |   |- MethodNotAllowed 405, BodyTooLarge 413, HeaderTooLarge 431
    |   |- LimitExceeded 400        TooManyImages, ImageTooLarge, TooManyTokens, ContextTooLong, AspectRatioExceeded,
    |   |                           TooManyMedia, MediumTooLarge, MediumTooLong
    |   |- BadMedia 400             Undecodable, UnsupportedFormat 415, SourceBlocked 403, SourceFailed 424,
    |   |                           SourceTooLarge 413, MediumUndecodable, MediumUnsupported 415
    |   `- DialectNotSupported 501
    |- Exhausted 429                blame tenant: KvBudgetExhausted, InFlightExhausted, RateExceeded
    |- Overloaded 503              blame gateway: PoolSaturated, BodyMemoryExhausted, BackendsFull, Draining, DrainEnded
    |- BackendFailed 502            blame backend: NoBackend 503, BackendUnreachable, BackendLost, BackendTimeout 504
    `- GatewayBug 500               blame gateway: ImageWorkerLost

Decided here: code, status, blame and the words a client may read. Not decided here: how a dialect spells an error,
and when anything is raised. The public message never holds a payload, an address, a path or a library's own text;
``detail`` never leaves the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Blame(StrEnum):
    CLIENT = "client"
    TENANT = "tenant"
    GATEWAY = "gateway"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How another vendor puts an error: its status, and its word for it."""

    status: int
    code: str


class GatewayError(Exception):
    """A failure with a stable snake_case ``code``; ``part`` names the place in the request (messages.1.content.0)."""

    code: ClassVar[str] = "gateway_error"
    status: ClassVar[int] = 500
    blame: ClassVar[Blame] = Blame.GATEWAY
    openai_type: ClassVar[str] = "api_error"  # OpenAI's vocabulary, which its SDKs and most tools key on
    summary: ClassVar[str] = "The gateway failed."
    # Tells the official SDKs not to repeat a request that cannot succeed (header x-should-retry).
    should_retry: ClassVar[bool | None] = None

    def __init__(
        self,
        message: str | None = None,
        *,
        part: str | None = None,
        rule: str | None = None,
        detail: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.message = message or self.summary
        self.part = part
        self.rule = rule
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.spelling: Spelling | None = None
        # How the tenant stands against its rates (quota.standing.Standing), and what of it a client's headers tell.
        self.standing: object | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        super().__init__(self.message)

    @property
    def finding(self) -> str:
        """How shadow mode tells what it would have refused: the code, and the rule where one is behind it."""
        return f"{self.code}:{self.rule}" if self.rule else self.code

    @property
    def told_status(self) -> int:
        """The status a client gets: the policy's vendor's where it differs from ours."""
        return self.status if self.spelling is None else self.spelling.status

    @property
    def told_code(self) -> str:
        """The code a client reads in the envelope."""
        return self.code if self.spelling is None else self.spelling.code

    def at(self, part: str) -> GatewayError:
        """Name the part of the request, unless it is named already; returns the same error."""
        if self.part is None:
            self.part = part
        return self


class Rejected(GatewayError):
    code = "rejected"
    status = 400
    blame = Blame.CLIENT
    openai_type = "invalid_request_error"
    summary = "The request is not acceptable."


class Malformed(Rejected):
    code = "malformed"
    summary = "The request is malformed."


class NotJson(Malformed):
    code = "not_json"
    summary = "The body is not a JSON object."


class TooComplex(Malformed):
    code = "too_complex"
    summary = "The body has more structure than the gateway reads: too many objects, or too much text in small pieces."


class InvalidRequest(Malformed):
    code = "invalid_request"
    summary = "A field of the request has the wrong shape."


class UnsupportedEncoding(Malformed):
    code = "unsupported_content_encoding"
    status = 415
    summary = "Request bodies with a content coding are not accepted; send the body as it is."


class Unauthenticated(Rejected):
    code = "unauthenticated"
    status = 401
    openai_type = "authentication_error"
    summary = "A valid API key is required."


class NotPermitted(Rejected):
    code = "not_permitted"
    status = 403
    openai_type = "permission_error"
    summary = "The policy does not permit this."


class ModelNotFound(Rejected):
    code = "model_not_found"
    status = 404
    openai_type = "not_found_error"
    summary = "No backend serves this model."


class ResponseNotFound(Rejected):
    code = "response_not_found"
    status = 404
    openai_type = "not_found_error"
    summary = "There is no response of this id."


class RouteNotFound(Rejected):
    code = "route_not_found"
    status = 404
    openai_type = "not_found_error"
    summary = "The gateway has no such path."


class MethodNotAllowed(Rejected):
    code = "method_not_allowed"
    status = 405
    summary = "This path does not take this method."
    allowed: tuple[str, ...] = ()  # for the header Allow, which RFC 9110 §15.5.6 demands


class BodyTooLarge(Rejected):
    code = "body_too_large"
    status = 413
    summary = "The body is larger than the gateway accepts."


class HeaderTooLarge(Rejected):
    code = "header_too_large"
    status = 431
    summary = "A header, or the request line, is longer than the gateway reads."


class DialectNotSupported(Rejected):
    code = "dialect_not_supported"
    status = 501
    summary = "No backend of this model speaks this API."


class LimitExceeded(Rejected):
    code = "limit_exceeded"
    summary = "A limit of the policy is exceeded."


class TooManyImages(LimitExceeded):
    code = "too_many_images"
    summary = "The request has more images than allowed."


class ImageTooLarge(LimitExceeded):
    code = "image_too_large"
    summary = "An image has more pixels or bytes than allowed."


class TooManyTokens(LimitExceeded):
    code = "too_many_tokens"
    summary = "The request needs more tokens than the policy allows."


class ContextTooLong(LimitExceeded):
    code = "context_length_exceeded"
    summary = "The request does not fit the model's context."


class AspectRatioExceeded(LimitExceeded):
    code = "aspect_ratio_exceeded"
    summary = "The image's sides differ by more than the model accepts."


class TooManyMedia(LimitExceeded):
    code = "too_many_media"
    summary = "The request has more videos or sounds than allowed."


class MediumTooLarge(LimitExceeded):
    code = "medium_too_large"
    summary = "A video or sound has more bytes, pixels or frames than allowed."


class MediumTooLong(LimitExceeded):
    code = "medium_too_long"
    summary = "A video or sound lasts longer than allowed."


class BadMedia(Rejected):
    code = "bad_media"
    summary = "A medium of the request cannot be used."


class Undecodable(BadMedia):
    code = "image_undecodable"
    summary = "The data is not a complete, valid image."


class UnsupportedFormat(BadMedia):
    code = "image_format_unsupported"
    status = 415
    summary = "Images of this format are not accepted."


class MediumUndecodable(BadMedia):
    code = "medium_undecodable"
    summary = "The data is no valid video or sound."


class MediumUnsupported(BadMedia):
    code = "medium_unsupported"
    status = 415
    summary = "Videos or sounds of this kind cannot be handled here."


class SourceBlocked(BadMedia):
    code = "source_blocked"
    status = 403
    openai_type = "permission_error"
    summary = "Images may not be fetched from this address."


class SourceFailed(BadMedia):
    code = "source_failed"
    status = 424
    summary = "The image could not be fetched from its address."


class SourceTooLarge(BadMedia):
    code = "source_too_large"
    status = 413
    summary = "The image at this address is larger than allowed."


class Exhausted(GatewayError):
    code = "exhausted"
    status = 429
    blame = Blame.TENANT
    openai_type = "rate_limit_error"
    summary = "The tenant's allowance is used up for now."


class KvBudgetExhausted(Exhausted):
    code = "kv_budget_exhausted"
    summary = "The tenant's KV tokens in flight are used up for now."


class InFlightExhausted(Exhausted):
    code = "in_flight_exhausted"
    summary = "The tenant has as many requests in flight as it may."


class RateExceeded(Exhausted):
    code = "rate_limit_exceeded"  # OpenAI's word for it
    summary = "A rate of the tenant's policy is used up for now."


class Overloaded(GatewayError):
    code = "overloaded"
    status = 503
    openai_type = "service_unavailable_error"
    summary = "The gateway is overloaded."


class PoolSaturated(Overloaded):
    code = "pool_saturated"
    summary = "Too many images are waiting to be processed."


class BodyMemoryExhausted(Overloaded):
    code = "body_memory_exhausted"
    summary = "Too many large bodies are in flight."


class BackendsFull(Overloaded):
    code = "backends_full"
    summary = "No backend has room for this request now: their KV caches, or the requests they may be given, are taken."


class Draining(Overloaded):
    code = "draining"
    summary = "The gateway is shutting down."


class DrainEnded(Overloaded):
    code = "drain_ended"
    summary = "The gateway had to end before this answer did."
    should_retry = False  # it may have run


class BackendFailed(GatewayError):
    code = "backend_failed"
    status = 502
    blame = Blame.BACKEND
    openai_type = "service_unavailable_error"
    summary = "The backend failed."


class NoBackend(BackendFailed):
    code = "no_backend"
    status = 503
    summary = "No backend can take this request now."


class BackendUnreachable(BackendFailed):
    code = "backend_unreachable"
    summary = "No connection to a backend could be made."


class BackendLost(BackendFailed):
    code = "backend_lost"
    summary = "The connection to the backend was lost; the request may have run."
    should_retry = False


class BackendTimeout(BackendFailed):
    code = "backend_timeout"
    status = 504
    summary = "The backend did not answer in time; the request may have run."
    should_retry = False


class GatewayBug(GatewayError):
    code = "gateway_bug"
    status = 500
    openai_type = "server_error"
    summary = "The gateway failed unexpectedly."


class ImageWorkerLost(GatewayBug):
    code = "image_worker_lost"
    summary = "The process working on this image was lost twice; the image is not tried again for a while."
    should_retry = False


class NotTaken(Exception):
    """A backend certainly did not take the request, so it may go elsewhere. Never reaches a client.

    ``reason`` (a metric label): connect, body_not_sent, refused, draining, aborted. ``response``: what was answered
    when it refused (an UpstreamResponse, read to its end), to be relayed as it is when there is nowhere else to go.
    """

    def __init__(self, reason: str, detail: str = "", response: object | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.response = response
        super().__init__(f"{reason}: {detail}")


def all_errors(root: type[GatewayError] = GatewayError) -> tuple[type[GatewayError], ...]:
    """Every class of the tree, parents before children, in the order of definition."""
    return (root, *(each for child in root.__subclasses__() for each in all_errors(child)))
