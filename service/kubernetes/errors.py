"""What a cluster may answer instead of what was asked for."""

from service.errors import FaultlineError, Unavailable


class ClusterUnavailable(Unavailable):
    """The API server does not answer, or asks to come again later. `retry_after_s`: when, where it says so."""

    title = "Kubernetes does not answer"

    def __init__(self, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class VersionExpired(FaultlineError):
    """410: what was asked to go on from is no longer kept; list again."""

    status = 410
    title = "Gone"
    news = False


class RequestRefused(FaultlineError):
    """The API server said no, and will say so again; `status` is its own."""

    title = "Kubernetes refused"

    def __init__(self, detail: str, status: int, reason: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason


class ObjectNotFound(RequestRefused):
    """404: there is no such object, or no such kind."""


class AlreadyExists(RequestRefused):
    """409, AlreadyExists: there is an object of that name."""
