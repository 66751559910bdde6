"""Standard Webhooks 1.0.0."""

from collections.abc import Sequence

from service.clock import Clock
from service.deliveries.channels import signing
from service.deliveries.channels.channel import Outcome, body, message_id
from service.deliveries.channels.http import Poster, of_webhook, post
from service.deliveries.records import DueDelivery


class WebhookChannel:
    """Sends signed messages to one address."""

    bulk = False

    def __init__(self, url: str, keys: Sequence[bytes], poster: Poster, clock: Clock) -> None:
        self._url = url
        self._keys = tuple(keys)
        self._poster = poster
        self._clock = clock

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send one message."""
        [message] = messages
        now = self._clock.now()
        content = body(message)
        headers = {
            "content-type": "application/json",
            "user-agent": "faultline",
            **signing.headers(self._keys, message_id(message), now, content),
        }
        return post(self._poster, self._url, content, headers, now, of_webhook)

    def close(self) -> None:
        """Nothing to close."""
