"""Requests, leases and times of the hooks' tests."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from service.hooks.request import LeaseExpired, Request

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def request(job_id: str = "7", request_id: str = "r1", **changes: Any) -> Request:
    plain: dict[str, Any] = {
        "request_id": request_id,
        "lease_token": "lease-token-of-" + request_id,
        "cluster": "lab",
        "job_id": job_id,
        "attempt": 0,
        "action": "requeue",
        "good_until": datetime.now(UTC) + timedelta(minutes=2),
        "exclude_nodes": ("gpu1",),
        "reasons": ("platform fault on one node",),
    }
    return Request(**(plain | changes))


@dataclass
class Lasting:
    """A lease that lasts for so many steps, of which none may take longer than `left_s`."""

    steps: int = 99
    left_s: float = 600.0

    def check(self, takes_s: float = 0.0) -> None:
        self.steps -= 1
        if self.steps < 0 or takes_s > self.left_s:
            raise LeaseExpired("the lease has expired")
