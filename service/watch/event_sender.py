"""Where ends of jobs go: onto the topic, or to the API. Both return only once what they were given has arrived."""

import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from service.api_client import ApiClient, ApiUnreachable
from service.contracts.event import JobCompletion
from service.errors import ConfigurationError, TooLarge, Unavailable
from service.messaging.record import Message

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
# The API takes 16 MiB at once.
BODY_BYTES = 8 << 20
_SERVER, _TOO_LARGE = 500, 413
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
        self._api = ApiClient(url, token=token, user_agent="faultline-watch", tls=tls, timeout_s=timeout_s)

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
                log.error("%s rejected %d of %d ends: %s", self._api.host, len(rejected), count, str(rejected[0])[:300])
            lines = lines[count:]

    def post(self, path: str, body: bytes, content_type: str = "application/json") -> Any:
        """Send a body and return the decoded answer.

        Raises:
            Unavailable, TooLarge, ConfigurationError: as in `Sender.send`.
        """
        try:
            response = self._api.request("POST", path, body, content_type)
        except ApiUnreachable as error:
            raise Unavailable(str(error)) from None
        if response.ok:
            return response.body
        message = f"{self._api.host} answered {response.status} to {path}"
        if response.detail:
            message += f": {response.detail}"
        if response.status >= _SERVER or response.status in _LATER:
            raise Unavailable(message)
        if response.status == _TOO_LARGE:
            raise TooLarge(message)
        raise ConfigurationError(message)

    def close(self) -> None:
        """See `Sender`."""
        self._api.close()


def encoded(event: JobCompletion) -> bytes:
    """The event as JSON, without what is not known."""
    return event.model_dump_json(by_alias=True, exclude_none=True).encode()
