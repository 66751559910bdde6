"""Clients that leave nothing behind when they can't connect, and their errors in the project's words."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import errors
from kafka.net.compat import KafkaNetClient

from service.errors import ConfigurationError, FaultlineError, Unavailable

log = logging.getLogger(__name__)

# Trying again does not mend these.
FOR_GOOD = (
    errors.AuthorizationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.SecurityDisabledError,
    errors.KafkaConfigurationError,
    errors.UnsupportedCodecError,
    errors.UnsupportedVersionError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidGroupIdError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidTopicError,
    errors.GroupMaxSizeReachedError,
)


class Fenced(ConfigurationError):
    """Another member of the group came with this member's name."""

    title = "Another member has this name"


def connected(make: Callable[..., Any], *args: Any, **config: Any) -> Any:
    """A client of kafka-python; where its constructor fails, the thread that it has started is ended.

    Raises:
        Unavailable, ConfigurationError: as `translated`.
    """
    started: list[Any] = []

    def client(**settings: Any) -> Any:
        started.append(KafkaNetClient(**settings))
        return started[-1]

    try:
        with translated("connect to the broker"):
            return make(*args, kafka_client=client, **config)
    except BaseException as error:
        for one in started:
            one.close()
        protocol = config.get("security_protocol", "PLAINTEXT")
        if isinstance(error, Unavailable) and protocol != "PLAINTEXT":
            # A broker that refuses a password or certificate just hangs up; the client can't tell that from an outage.
            hint = f"is {protocol} right there, and do user, password and certificates suit"
            raise Unavailable(f"{error.detail}; if the broker is up: {hint}?") from error
        raise


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """The client's errors as the service's.

    Whatever is not known to be for good may pass: a broker that is restarting answers with many kinds of errors.

    Raises:
        Fenced: another member has this one's name.
        ConfigurationError: the broker refuses, and will again.
        Unavailable: everything else, programming errors of the client included; the cause is kept.
    """
    try:
        yield
    except FaultlineError:
        raise
    except errors.FencedInstanceIdError as error:
        raise Fenced(
            "another worker with this member's name has taken over; on one host give each its own --name"
        ) from error
    except FOR_GOOD as error:
        raise ConfigurationError(f"Kafka: could not {doing}: {describe(error)}") from error
    except Exception as error:
        raise Unavailable(f"Kafka: could not {doing}: {describe(error)}") from error


def is_undecodable(error: BaseException | None) -> bool:
    """Whether the client stumbled over what a broker sent, rather than over the broker."""
    return isinstance(error, errors.CorruptRecordError) or not isinstance(error, errors.KafkaError | OSError | None)


def describe(error: BaseException) -> str:
    """An error in one line."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    return (text if text.startswith(name) else f"{name}: {text}" if text else name)[:300]


def quietly(doing: str, action: Callable[[], object]) -> None:
    """Do something on the way out whose failure changes nothing."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the client is given up either way
        log.info("could not %s: %s", doing, describe(error))
