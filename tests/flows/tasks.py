"""A running service with accounts, with helpers for its users and hooks: for tests of user tasks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import StorageState

from service.deliveries.config import ReportReceiver
from service.web.sessions import COOKIE, LIFETIME
from tests.service.web.live import serving
from tests.service.web.world import World, event, lines, make_world

API = "/api/v1"
PEOPLE = (("ola", "operator", ()), ("ana", "owner", ("orion/ana",)))


@dataclass
class Site:
    """The service at its address; `sender` sends completed jobs, `hook` executes requests."""

    world: World
    address: str
    sender: TestClient
    hook: TestClient
    accounts: dict[str, int]

    def tell(self, *events: dict[str, Any]) -> list[int]:
        """Send completed jobs (sending them again has no effect); return the numbers of the failures among them."""
        answer = self.sender.post(f"{API}/events", content=lines(*events)).json()
        assert answer["accepted"] + answer["duplicates"] == len(events), answer
        items = self.hook.get(f"{API}/failures?limit=500").json()["items"]
        return [one["id"] for job in events for one in items if one["job_id"] == job["job_id"]]

    def lease(self, job: str) -> dict[str, Any]:
        """Lease the request of one job; it must be the only one that is due."""
        asked = {"hook": "slurm@login1", "cluster": "orion", "max": 10, "seconds": 600}
        [given] = self.hook.post(f"{API}/resubmissions:lease", json=asked).json()
        assert given["job_id"] == job
        return cast("dict[str, Any]", given)

    def done(self, given: dict[str, Any], new_job: str) -> None:
        """Report the request as done, as the hook does."""
        answer = {"lease_token": given["lease_token"], "result": "done", "new_job_id": new_job}
        result = self.hook.post(f"{API}/resubmissions/{given['request_id']}:ack", json=answer)
        assert result.status_code == 200, result.text

    def ends_well(self, new_job: str, job: str) -> None:
        """Send the completion event of the resubmitted job."""
        self.world.clock.at += timedelta(minutes=30)
        ended = self.world.clock.at.isoformat()
        started = (self.world.clock.at - timedelta(minutes=20)).isoformat()
        again = event(new_job, status="succeeded", logs=[], resubmit_of=job, started_at=started, ended_at=ended)
        assert self.tell(again) == []

    def as_(self, name: str) -> StorageState:
        """Log a user in and return the cookies; a session that nobody uses ends while other tests move the clock."""
        with self.world.store.unit_of_work() as work:
            session = work.sessions.log_in(account_id=self.accounts[name], lasts=LIFETIME)
        cookie = {
            "name": COOKIE, "value": session, "domain": "127.0.0.1", "path": "/", "expires": -1,
            "httpOnly": True, "secure": False, "sameSite": "Strict",
        }  # fmt: skip
        return cast("StorageState", {"cookies": [cookie], "origins": []})


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Yield a service for the duration of the block; it polls for changes often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.web.pages.live.INTERVAL_S", 0.1)
        world = make_world(folder, report_receivers=(ReportReceiver("mail", personal=True, mail=True),))
        accounts = {}
        with world.store.unit_of_work() as work:
            for name, role, users in PEOPLE:
                accounts[name] = work.accounts.create(name, role, password=None, users=users).id
        sender, hook = world.client(world.token("ingest")), world.client(world.token("act", "read"))
        with serving(world.app) as address, sender, hook:
            yield Site(world, address, sender, hook, accounts)
        world.store.close()
