"""The interface of the channels: messages in, outcomes out; and the user in the address of an endpoint."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import orjson

from classifiers.suspected_place import suspected_node
from service.deliveries.records import DueDelivery

OWNER = "{user}"
# The name of a user comes from an event or a form. Anything else could address another mailbox or channel.
PLAIN_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)

Severity = Literal["critical", "error", "warning", "info"]
DEFAULT_SEVERITY: Severity = "warning"  # of a message whose side has none
Dedup = Literal["failure", "fingerprint"]
OutcomeKind = Literal["sent", "retry", "refused", "gone"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one message: sent, to be retried, rejected, or the endpoint is gone for all messages.

    `throttled`: the receiver asks for fewer requests, so that its other messages wait as well.
    """

    kind: OutcomeKind
    detail: str = ""
    retry_after_s: float | None = None
    throttled: bool = False


SENT = Outcome("sent")

# What people are paged for; any other message would be an alert about a report, or about good news.
ALERTS = frozenset(
    {
        "failure.diagnosed",
        "failure.revised",
        "incident.opened",
        "incident.closed",
        "resubmission.failed",
        "resubmission.demoted",
    }
)


class Channel(Protocol):
    """One way to send messages. `bulk`: it sends a whole batch at once, otherwise one message at a time."""

    bulk: bool

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send the messages; the outcome holds for each of them. Never raises for an error of the receiver."""
        ...

    def close(self) -> None:
        """Release resources."""
        ...


def node_of(verdict: Mapping[str, Any]) -> str | None:
    """The node that the verdict of a message suspects."""
    node = (verdict.get("suspect") or {}).get("node")
    return suspected_node(node, str(verdict.get("side")), abstained=bool(verdict.get("abstained")))


def message_id(message: DueDelivery) -> str:
    """The message's id for receivers: the same for each attempt, different in every database."""
    identity = f"{message.message_id}\n{message.created_at.isoformat()}\n{message.type}\n{message.key}"
    return f"msg_{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def timestamp(message: DueDelivery) -> str:
    """The time of the event, RFC 3339 in UTC."""
    return message.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def body(message: DueDelivery) -> bytes:
    """The body for webhooks and the topic: {type, timestamp, data}, `data` as in the outbox."""
    return orjson.dumps({"type": message.type, "timestamp": timestamp(message), "data": message.payload})


def verdict_of(message: DueDelivery) -> Mapping[str, Any]:
    """The verdict in a message; empty if it has none."""
    found = message.payload.get("verdict")
    return found if isinstance(found, Mapping) else {}


def ends_incident(message: DueDelivery) -> bool:
    """Whether the message ends what an earlier one with the same key began."""
    return message.type in {"incident.closed", "resubmission.succeeded"}


def summary(message: DueDelivery) -> str:
    """One line for people: job, side, and the first line of evidence or sentence."""
    verdict = verdict_of(message)
    if not message.type.startswith("failure."):
        why = next((message.payload[name] for name in ("why", "headline", "title") if message.payload.get(name)), "")
        return f"{message.key}: {message.type}{f': {why}' if why else ''}"[:1000]
    description = message.payload.get("headline") or verdict.get("explanation") or message.type
    cause = f" ({verdict['side']}, {verdict['cause']})" if "cause" in verdict and "side" in verdict else ""
    return f"{message.key} failed{cause}: {description}"[:1000]


def failure_link(public_url: str | None, message: DueDelivery) -> str | None:
    """The link to the failure's page, if the public address of the service is configured."""
    failure_id = message.payload.get("failure_id")
    return None if public_url is None or failure_id is None else f"{public_url.rstrip('/')}/failures/{failure_id}"
