"""Where ends of jobs go: onto the topic, or to the API. Both return only once what they were given has arrived."""

import json
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpcore2

from service.contracts.event import JobCompletion
from service.errors import ConfigurationError, TooLarge, Unavailable
from service.messaging.record import Message

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
# The API takes 16 MiB at once.
BODY_BYTES = 8 << 20
ANSWER_BYTES = 16 << 20
_OK, _BAD, _SERVER, _TOO_LARGE = 200, 300, 500, 413
_LATER = (408, 409, 425, 429)


class Sender(Protocol):
    """Takes events; the same one may come again."""

    def send(self, events: Sequence[JobCompletion]) -> None:
        """Return once they have arrived.

        Raises:
            Unavailable: not all have; give the same ones again.
            TooLarge: one of them is refused for its size.
            ConfigurationError: they are refused for good.
        """
        ...

    def close(self) -> None:
        """Give back what is open."""
        ...


class MessageProducer(Protocol):
    """What is asked of the producer (service.messaging.kafka.producer.Producer)."""

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        """See there."""
        ...

    def close(self) -> None:
        """See there."""
        ...


class TopicSender:
    """Onto a topic, keyed so that one job's attempts stay in order."""

    def __init__(self, producer: MessageProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def send(self, events: Sequence[JobCompletion]) -> None:
        """See `Sender`."""
        self._producer.send(
            self._topic, [Message(encoded(one), f"{one.cluster}/{one.job_id}".encode()) for one in events]
        )

    def close(self) -> None:
        """See `Sender`."""
        self._producer.close()


class ApiSender:
    """To the service's API.

    Args:
        url: where the service is.
        token: gives the API token (scope: ingest); read for each request, so that it can be changed.
        tls: whom to trust.
    """

    def __init__(
        self, url: str, token: Callable[[], str] | None, tls: ssl.SSLContext | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._base = url.rstrip("/") + "/api/v1"
        self._shown = urlsplit(url).netloc.rpartition("@")[2]
        self._token = token
        self._timeout_s = timeout_s
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls or ssl.create_default_context(), max_connections=2, http2=False
        )

    def send(self, events: Sequence[JobCompletion]) -> None:
        """See `Sender`."""
        lines = [encoded(one) for one in events]
        while lines:
            count, size = 0, 0
            while count < len(lines) and (count == 0 or size + len(lines[count]) < BODY_BYTES):
                size += len(lines[count])
                count += 1
            answer = self.post("/events", b"\n".join(lines[:count]), "application/x-ndjson")
            rejected = answer.get("rejected") if isinstance(answer, Mapping) else None
            if rejected:  # they lie among the dead letters, from where they can be sent again
                log.error("%s rejected %d of %d ends: %s", self._shown, len(rejected), count, str(rejected[0])[:300])
            lines = lines[count:]

    def post(self, path: str, body: bytes, content_type: str = "application/json") -> Any:
        """What the service answers.

        Raises:
            Unavailable, TooLarge, ConfigurationError: as in `Sender.send`.
        """
        headers = {"content-type": content_type, "accept": "application/json", "user-agent": "faultline-watch"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token()}"
        steps = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_s)
        got = b""
        try:
            with self._pool.stream(
                "POST", self._base + path, headers=list(headers.items()), content=body, extensions={"timeout": steps}
            ) as response:
                for part in response.iter_stream():
                    got += part
                    if len(got) > ANSWER_BYTES:
                        raise Unavailable(f"{self._shown} answers too much")
        except httpcore2.TimeoutException:
            raise Unavailable(f"no answer from {self._shown} within {self._timeout_s:g} s") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise Unavailable(f"{self._shown}: {type(error).__name__} {error}"[:300]) from None
        return self._checked(path, response.status, got)

    def close(self) -> None:
        """See `Sender`."""
        self._pool.close()

    def _checked(self, path: str, status: int, got: bytes) -> Any:
        try:
            answer = json.loads(got) if got else None
        except ValueError:
            answer = None
        if _OK <= status < _BAD:
            return answer
        detail = answer.get("detail") if isinstance(answer, Mapping) else None
        said = f"{self._shown} answered {status} to {path}" + (f": {str(detail)[:300]}" if detail else "")
        if status >= _SERVER or status in _LATER:
            raise Unavailable(said)
        if status == _TOO_LARGE:
            raise TooLarge(said)
        raise ConfigurationError(said)


def encoded(event: JobCompletion) -> bytes:
    """The event as JSON, without what is not known."""
    return event.model_dump_json(by_alias=True, exclude_none=True).encode()
