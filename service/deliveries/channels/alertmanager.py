"""Prometheus Alertmanager, API v2: POST /api/v2/alerts.

The labels of an alert are its identity. A failure is an event without duration, so its alert expires after a while; a
verdict that is revised to another cause creates another alert, and the first one expires. What a message without a job
is about (such as an incident) is a label of its own; the alert of an incident ends when the incident is closed. That a
resubmitted job succeeded is not sent: the message lacks the failure's node and kind, which are labels of its alert.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import orjson

from service.clock import Clock
from service.deliveries.channels.channel import (
    DEFAULT_SEVERITY,
    Dedup,
    Outcome,
    Severity,
    ends_incident,
    failure_link,
    node_of,
    summary,
    verdict_of,
)
from service.deliveries.channels.http import Poster, of_service, post
from service.deliveries.channels.message_text import next_step, plain_text
from service.deliveries.records import DueDelivery


class AlertmanagerChannel:
    """Sends alerts in batches."""

    bulk = True

    def __init__(
        self,
        url: str,
        poster: Poster,
        clock: Clock,
        *,
        severity: Mapping[str, Severity],
        lasts_s: float,
        dedup: Dedup = "failure",
        public_url: str | None = None,
    ) -> None:
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._poster = poster
        self._clock = clock
        self._severity = severity
        self._lasts = timedelta(seconds=lasts_s)
        self._dedup = dedup
        self._public_url = public_url

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send all messages in one request."""
        content = orjson.dumps([self.alert(message) for message in messages])
        headers = {"content-type": "application/json", "user-agent": "faultline"}
        return post(self._poster, self._url, content, headers, self._clock.now(), of_service)

    def alert(self, message: DueDelivery) -> dict[str, object]:
        """The message as an alert."""
        verdict, now = verdict_of(message), self._clock.now()
        labels = {
            "alertname": "FaultlineFailure",
            "severity": self._severity.get(str(verdict.get("side")), DEFAULT_SEVERITY),
            "cluster": verdict.get("cluster"),
            "side": verdict.get("side"),
            "cause": verdict.get("cause"),
            "node": node_of(verdict),
            "fingerprint": verdict.get("fingerprint"),
            "job_id": verdict.get("job_id") if self._dedup == "failure" else None,
            "subject": None if verdict.get("job_id") else message.key,
        }
        link, again = failure_link(self._public_url, message), next_step(message)
        return {
            "labels": {name: str(value) for name, value in labels.items() if value},
            # What sends alerts on to chats and mail takes markup in annotations for its own.
            "annotations": {
                "summary": plain_text(summary(message)),
                "description": plain_text(str(verdict.get("explanation") or "")),
                **({} if again is None else {"next": again}),  # no label: it changes without another failure
            },
            "startsAt": min(message.created_at, now).isoformat(),
            "endsAt": (now if ends_incident(message) else now + self._lasts).isoformat(),
            **({} if link is None else {"generatorURL": link}),
        }

    def close(self) -> None:
        """Nothing to close."""
