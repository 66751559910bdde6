"""One error type that carries its HTTP status and what was wrong where; one shape for every answer (RFC 9457)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One place that is wrong: which field, what was expected there, what was found (shortened, never a secret)."""

    field: str
    expected: str
    got: str | None = None


class FaultlineError(Exception):
    """Something a caller or an operator can mend. `status`: the HTTP status; `news`: whether to log it."""

    status = 500
    title = "Internal error"
    news = True

    def __init__(self, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors


class InvalidInput(FaultlineError):
    """What was sent in is not what the contract asks for."""

    status = 422
    title = "Invalid input"
    news = False


def invalid(field: str, expected: str, got: str) -> InvalidInput:
    """The error of one field; what was found is shortened and must be no secret."""
    return InvalidInput(f"{field}: expected {expected}", (FieldError(field, expected, got[:80]),))


class UnreadableRecord(InvalidInput):
    """A record that can't become an event: it goes to the dead letters with `reason`."""

    def __init__(self, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(reason, errors)
        self.reason = reason


class NotFound(FaultlineError):
    """No such thing is stored."""

    status = 404
    title = "Not found"
    news = False


class Conflict(FaultlineError):
    """The thing changed meanwhile, or is in a state that does not allow it."""

    status = 409
    title = "Conflict"
    news = False


class TooLarge(FaultlineError):
    """More was sent than the service takes at once."""

    status = 413
    title = "Too large"
    news = False


class Unauthorized(FaultlineError):
    """No token, or one that is not known."""

    status = 401
    title = "Unauthorized"
    news = False


class Forbidden(FaultlineError):
    """The token's scopes do not allow this."""

    status = 403
    title = "Forbidden"
    news = False


class Unavailable(FaultlineError):
    """A part that the service needs (database, broker) does not answer now; trying again later may help."""

    status = 503
    title = "Unavailable"


class ConfigurationError(FaultlineError):
    """A setting is missing or wrong; the process must not start."""

    title = "Configuration error"


class ModelUnavailable(ConfigurationError):
    """The model folder is missing, or holds something other than a model of this version."""

    title = "No model"
