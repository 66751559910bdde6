"""Messages, endpoints and drains for tests."""

import base64
import os
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from service.db.session import Store
from service.deliveries.channels.channel import Channel
from service.deliveries.channels.http import Poster
from service.deliveries.channels.webhook import WebhookChannel
from service.deliveries.config import Route, Sending, defaults
from service.deliveries.drain import Drain, Target
from service.deliveries.records import DueDelivery, OutboxMessage
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, verdict

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
SENDING = Sending.model_validate(defaults()["sending"])
LOOPBACK = ip_network("127.0.0.0/8")


def payload(number: int = 1, **changes: Any) -> dict[str, Any]:
    result = verdict(cluster="orion", job_id=str(number), attempt=0, **changes)
    result.pop("evidence")
    return {"failure_id": number, "headline": "FileNotFoundError: /data/x", "verdict": result}


def message(number: int = 1, **changes: Any) -> OutboxMessage:
    return OutboxMessage("failure.diagnosed", f"orion/{number}", payload(number, **changes))


def due(number: int = 1, **changes: Any) -> DueDelivery:
    plain = DueDelivery(number, "e", "failure.diagnosed", f"orion/{number}", payload(number), NOON, 0)
    return replace(plain, **changes)


def poster(**changes: Any) -> Poster:
    return Poster([LOOPBACK], **{"timeout_s": 5.0, "answer_bytes": 65_536, **changes})


def webhook(name: str, url: str, clock: FrozenClock, *routes: Route, timeout_s: float = 5.0) -> Target:
    return Target(name, routes, WebhookChannel(url, [KEY], poster(timeout_s=timeout_s), clock), url)


def target(name: str, channel: Channel, *routes: Route) -> Target:
    return Target(name, routes, channel, name)


def drain(
    store: Store,
    clock: FrozenClock,
    targets: Sequence[Target],
    *,
    owner: str = "a",
    telemetry: Telemetry | None = None,
    **sending: Any,
) -> Drain:
    return Drain(
        store,
        targets,
        SENDING.model_copy(update=sending),
        owner=f"{owner}-{os.getpid()}",
        clock=clock,
        telemetry=telemetry or Telemetry(),
        chance=lambda: 0.0,
    )


def put(store: Store, *numbers: int) -> None:
    with store.unit_of_work() as work:
        work.outbox.add([message(number) for number in numbers])
