"""Sends job completions to the topic or to the API; both return only after the events have arrived."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from service.api_client import ApiClient, ApiUnreachable
from service.contracts.event import JobCompletion
from service.errors import ConfigurationError, TooLarge, Unavailable
from service.messaging.record import Message, MessageProducer

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
# The API accepts at most 16 MiB in one request.
BODY_BYTES = 8 << 20
_SERVER, _TOO_LARGE = 500, 413
_LATER = (408, 409, 425, 429)


class Sender(Protocol):
    """Sends events; the same event may be sent again."""

    def send(self, events: Sequence[JobCompletion]) -> None:
        """Send the events; returns after they have arrived.

        Raises:
            Unavailable: not all have arrived; send the same events again.
            TooLarge: an event is too large.
            ConfigurationError: the events are refused permanently.
        """
        ...

    def close(self) -> None:
        """Release resources."""
        ...


class TopicSender:
    """Sends to a topic, with a key that keeps the attempts of a job in order."""

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
    """Sends to the service's API.

    Args:
        url: address of the service.
        token: returns the API token (scope: ingest); called for each request.
    """

    def __init__(self, url: str, token: Callable[[], str] | None) -> None:
        self._api = ApiClient(url, token=token, user_agent="faultline-watch", timeout_s=TIMEOUT_S)

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
            if rejected:  # they are stored as dead letters and can be resent
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
    """Return the event as JSON, without null fields."""
    return event.model_dump_json(by_alias=True, exclude_none=True).encode()
