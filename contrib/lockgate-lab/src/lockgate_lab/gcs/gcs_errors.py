"""Refusals of Google Cloud Storage's JSON API, worded as it words them.

Source: the page "HTTP status and error codes for JSON" of the Cloud Storage documentation.
"""

from __future__ import annotations

from typing import Any

_USUAL_REASON = {
    400: "invalid",
    401: "required",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    410: "gone",
    412: "conditionNotMet",
    416: "requestedRangeNotSatisfiable",
    429: "rateLimitExceeded",
    500: "internalError",
    501: "notImplemented",
    502: "badGateway",
    503: "backendError",
}


class GcsError(Exception):
    """A refusal: status, reason, and the message for people."""

    def __init__(self, status: int, message: str, reason: str = "", headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.message = message
        self.reason = reason or _USUAL_REASON.get(status, "backendError")
        self.headers = headers or {}
        super().__init__(f"{status} {self.reason}: {message}")

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the answer."""
        detail = {"message": self.message, "domain": "global", "reason": self.reason}
        if self.reason == "conditionNotMet":
            detail |= {"locationType": "header", "location": "If-Match"}
        if self.reason == "rateLimitExceeded":
            detail["domain"] = "usageLimits"
        return {"error": {"code": self.status, "message": self.message, "errors": [detail]}}


class NotModifiedError(Exception):
    """The answer is 304: a not-match precondition of a read was not met."""


def no_such_object(bucket: str, name: str) -> GcsError:
    """Return the 404 for an object."""
    return GcsError(404, f"No such object: {bucket}/{name}")


def condition_not_met() -> GcsError:
    """Return the 412 for any precondition."""
    return GcsError(412, "At least one of the pre-conditions you specified did not hold.")
