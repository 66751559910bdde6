"""Errors with their HTTP status and the invalid fields; all answers have the shape of RFC 9457."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

DAMAGED = "a stored value is damaged: it is not what this service writes"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field: its name, the expected value, and the value found (shortened, never a secret)."""

    field: str
    expected: str
    got: str | None = None


class FaultlineError(Exception):
    """An error that a caller or an operator can resolve. `status`: of HTTP; `is_logged`: whether the server logs it."""

    status = 500
    title = "Internal error"
    is_logged = True

    def __init__(self, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors


class InvalidInput(FaultlineError):
    """The input does not conform to the contract."""

    status = 422
    title = "Invalid input"
    is_logged = False


class AmbiguousMessage(FaultlineError):
    """A request whose end proxies and servers can see at different places."""

    status = 400
    title = "Ambiguous message"
    is_logged = False


def invalid(field: str, expected: str, got: str) -> InvalidInput:
    """The error of one field; the value found is shortened and must not be a secret."""
    return InvalidInput(f"{field}: expected {expected}", (FieldError(field, expected, got[:80]),))


class UnreadableRecord(InvalidInput):
    """A record that cannot be parsed as an event: it becomes a dead letter with `reason`."""

    def __init__(self, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(reason, errors)
        self.reason = reason


class NotFound(FaultlineError):
    """The requested item does not exist."""

    status = 404
    title = "Not found"
    is_logged = False


class Conflict(FaultlineError):
    """The item has changed, or its state does not allow the operation."""

    status = 409
    title = "Conflict"
    is_logged = False


class TimedOut(FaultlineError):
    """The request did not arrive in time."""

    status = 408
    title = "Request timeout"
    is_logged = False


class TooManyRequests(FaultlineError):
    """The caller reached a limit; `retry_after_s`: seconds until it may try again."""

    status = 429
    title = "Too many requests"
    is_logged = False

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class TooLarge(FaultlineError):
    """The request is larger than the service accepts."""

    status = 413
    title = "Too large"
    is_logged = False


class Unauthorized(FaultlineError):
    """No token, or an unknown one."""

    status = 401
    title = "Unauthorized"
    is_logged = False


class Forbidden(FaultlineError):
    """The token's scopes do not allow this."""

    status = 403
    title = "Forbidden"
    is_logged = False


class Unavailable(FaultlineError):
    """A required service (database, broker) does not answer; retrying later may help."""

    status = 503
    title = "Unavailable"


class DamagedData(FaultlineError):
    """A stored value is none that this service writes, as after the restore of a database that somebody changed."""

    title = "Damaged data"


class ConfigurationError(FaultlineError):
    """A setting is missing or wrong; the process must not start."""

    title = "Configuration error"


class ModelUnavailable(ConfigurationError):
    """The model folder is missing, or holds something other than a model of this version."""

    title = "No model"


@contextmanager
def damage_translated() -> Iterator[None]:
    """Translate what is raised when a stored value has another form than those that are written.

    Raises:
        DamagedData: it has.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # of JSON and of models, too
        raise DamagedData(DAMAGED) from error
