"""PagerDuty, Events API v2: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/."""

from collections.abc import Mapping, Sequence

import orjson

from service.clock import Clock
from service.deliveries.channels.channel import (
    ALERTS,
    DEFAULT_SEVERITY,
    Dedup,
    Outcome,
    Severity,
    ends_incident,
    failure_link,
    node_of,
    summary,
    timestamp,
    verdict_of,
)
from service.deliveries.channels.http import Poster, of_service, post
from service.deliveries.channels.message_text import next_step, plain_text
from service.deliveries.records import DueDelivery

LONGEST_KEY = 255
LONGEST_SUMMARY = 1024
DETAILS = ("job_id", "attempt", "side", "cause", "confidence", "decision")
TYPES = ALERTS | {"resubmission.succeeded"}


class PagerDutyChannel:
    """Opens incidents; a revised verdict updates the incident of the first one.

    An incident that is closed, and the incident of a failure whose job succeeded again, are resolved.
    """

    bulk = False

    def __init__(
        self,
        url: str,
        routing_key: str,
        poster: Poster,
        clock: Clock,
        *,
        severity: Mapping[str, Severity],
        dedup: Dedup = "failure",
        public_url: str | None = None,
    ) -> None:
        self._url = url
        self._routing_key = routing_key
        self._poster = poster
        self._clock = clock
        self._severity = severity
        self._dedup = dedup
        self._public_url = public_url

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send one message."""
        [message] = messages
        headers = {"content-type": "application/json", "user-agent": "faultline"}
        return post(self._poster, self._url, orjson.dumps(self.event(message)), headers, self._clock.now(), of_service)

    def event(self, message: DueDelivery) -> dict[str, object]:
        """The message as a PagerDuty event."""
        verdict = verdict_of(message)
        link = failure_link(self._public_url, message)
        return {
            "routing_key": self._routing_key,
            "event_action": "resolve" if ends_incident(message) else "trigger",
            "dedup_key": dedup_key(message, self._dedup),
            "client": "Faultline",
            **({} if link is None else {"client_url": link}),
            "payload": {
                "summary": plain_text(summary(message))[:LONGEST_SUMMARY],
                "source": node_of(verdict) or message.key,
                "severity": self._severity.get(str(verdict.get("side")), DEFAULT_SEVERITY),
                "timestamp": timestamp(message),
                "group": verdict.get("cluster"),
                "class": verdict.get("cause"),
                "custom_details": {
                    **{name: verdict.get(name) for name in DETAILS},
                    "next": next_step(message),
                    "explanation": plain_text(str(verdict.get("explanation") or "")),
                },
            },
        }

    def close(self) -> None:
        """Nothing to close."""


def dedup_key(message: DueDelivery, dedup: Dedup) -> str:
    """The key of an incident: the failure, or its kind on its cluster."""
    verdict = verdict_of(message)
    if dedup == "fingerprint" and verdict.get("fingerprint"):
        return f"faultline/{verdict.get('cluster')}/{verdict['fingerprint']}"[:LONGEST_KEY]
    return f"faultline/failure/{message.payload.get('failure_id')}/{message.key}"[:LONGEST_KEY]
