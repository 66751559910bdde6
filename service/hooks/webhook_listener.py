"""Wakes the hook for the next round: on a timer, at shutdown, or by a signed webhook."""

import hmac
import logging
import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import ClassVar, Self

from service.clock import Clock
from service.deliveries.channels import signing
from service.errors import ConfigurationError
from service.listeners import REQUEST_S, BoundedServer
from service.shutdown import SignalShutdownFlag

TOLERANCE = timedelta(minutes=5)  # the same value as in the specification's reference implementations
LONGEST_ID = 256


class InvalidSignature(Exception):
    """The message is rejected; the text says why, without its content."""


def verify_signature(keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Return if one of the keys signed this message within the tolerance, by Standard Webhooks 1.0.0.

    Args:
        keys: the accepted keys.
        headers: headers by lower-case name.
        body: the body as received.
        now: the current time.

    Raises:
        InvalidSignature: a header is missing or wrong, or no signature matches.
    """
    message_id, sent, given = (headers.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if not message_id or len(message_id) > LONGEST_ID or not sent or not given:
        raise InvalidSignature("expected the headers webhook-id, webhook-timestamp and webhook-signature")
    if "." in message_id:  # it separates id, time and body in what is signed
        raise InvalidSignature("webhook-id: expected an id without a full stop")
    if not (sent.isascii() and sent.isdecimal() and len(sent) <= len("99999999999")):
        raise InvalidSignature("webhook-timestamp: expected seconds since 1970")
    at = datetime.fromtimestamp(int(sent), UTC)
    if abs(now - at) > TOLERANCE:
        raise InvalidSignature("webhook-timestamp: too old, or too far in the future")
    signatures = [one.encode() for one in given.split(" ") if one.startswith("v1,")]
    for key in keys:
        wanted = signing.headers([key], message_id, at, body)["webhook-signature"].encode()
        if any(hmac.compare_digest(wanted, one) for one in signatures):
            return
    raise InvalidSignature("webhook-signature: no signature matches")


log = logging.getLogger(__name__)

BODY_BYTES = 256 * 1024
ACCEPTED, BAD_REQUEST, UNAUTHORIZED, TOO_LARGE, UNAVAILABLE = 204, 400, 401, 413, 503


class WakeUp:
    """A wait that ends early on notification or shutdown.

    Args:
        stop: the shutdown flag.
    """

    def __init__(self, stop: SignalShutdownFlag) -> None:
        self._stop = stop
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def notify(self) -> None:
        """End the current wait; may be called from any thread."""
        with suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, on notification, or at shutdown."""
        select.select([self._stop.fileno(), self._reader], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._reader, 65_536)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._reader)
        os.close(self._writer)


class WebhookListener:
    """Accepts signed webhooks (Standard Webhooks) and notifies; their content is not used, since requests are leased.

    Args:
        host: the address to listen on.
        port: the port; 0: any free port.
        keys: returns the accepted signing keys.
        notify: called for each accepted webhook.
        clock: checks the age of a message.

    Raises:
        ConfigurationError: the address can't be used.
    """

    def __init__(
        self, host: str, port: int, keys: Callable[[], Sequence[bytes]], notify: Callable[[], None], clock: Clock
    ) -> None:
        handler = type(
            "Handler", (_Handler,), {"keys": staticmethod(keys), "notify": staticmethod(notify), "clock": clock}
        )
        try:
            self._server = BoundedServer((host, port), handler)
        except OSError as error:
            raise ConfigurationError(f"can't listen on {host} port {port}: {error.strerror}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="webhook-listener"
        )

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S
    server_version = "faultline-hook"
    sys_version = ""
    keys: ClassVar[Callable[[], Sequence[bytes]]]
    notify: ClassVar[Callable[[], None]]
    clock: ClassVar[Clock]

    def do_POST(self) -> None:
        """Handle a webhook."""
        self._answer(self._take())

    def _take(self) -> int:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()):
            return BAD_REQUEST
        if len(length) > len(str(BODY_BYTES)) or int(length) > BODY_BYTES:
            return TOO_LARGE
        body = self.rfile.read(int(length))
        try:
            verify_signature(type(self).keys(), dict(_lower(self.headers.items())), body, type(self).clock.now())
        except InvalidSignature as error:
            log.warning("a webhook from %s was rejected: %s", self.client_address[0], error)
            return UNAUTHORIZED
        except ConfigurationError as error:
            log.error("a webhook from %s can't be checked: %s", self.client_address[0], error.detail)  # noqa: TRY400 - said it all
            return UNAVAILABLE
        type(self).notify()
        return ACCEPTED

    def _answer(self, status: int) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name for it
        """Log nothing here; events are logged where they occur."""


def _lower(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((name.lower(), value) for name, value in headers)
