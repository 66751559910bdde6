"""Errors of requests to the Kubernetes API."""

from service.errors import FaultlineError, Unavailable


class ClusterUnavailable(Unavailable):
    """The API server does not answer or asks for a later retry, after `retry_after_s` seconds if it gives them."""

    title = "Kubernetes does not answer"

    def __init__(self, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class AnswerTooLarge(ClusterUnavailable):
    """The answer has more bytes than are read, such as a page of many large objects."""


class VersionExpired(FaultlineError):
    """410: the resource version or continue token has expired; list again."""

    status = 410
    title = "Gone"


class RequestRefused(FaultlineError):
    """The API server refuses the request permanently; `status` is its HTTP status."""

    title = "Kubernetes refused"

    def __init__(self, detail: str, status: int, reason: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason


class ObjectNotFound(RequestRefused):
    """404: the object or its kind does not exist."""


class AlreadyExists(RequestRefused):
    """409, AlreadyExists: an object with this name exists."""
