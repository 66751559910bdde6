"""A service without web and scheduler: real store, policy, advice and automation, with a fake classifier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from classifiers.contracts import Evidence, RawCase, Suspect, Verdict
from service.automation.service import Automation
from service.contracts.event import JobCompletion, from_object
from service.db.session import Store
from service.deliveries.tables import outbox
from service.failures.records import FailureRow
from service.logs.fetch import LogFetcher
from service.messaging.batch_result import BatchOutcome
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.recommend.policy import Policy
from service.resubmissions.records import HookAnswer, Lease, Request, RequestState
from service.sql.packing import unpack
from service.telemetry import Telemetry
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import GUESS, HARDWARE, NOW, SYSTEM

OUTAGE = replace(SYSTEM, fingerprint="1:stale", confidence=0.95)
BROKEN = replace(SYSTEM, cause="SYS.3", cause_top=("SYS.3",), retry_outlook="after_repair", fingerprint="1:broken")
BY_WORD = {
    "Xid": HARDWARE,
    "Stale file handle": OUTAGE,
    "controller misconfigured": BROKEN,
    "connection reset": replace(SYSTEM, fingerprint="1:reset", confidence=0.9),
    "ModuleNotFoundError": GUESS,
}
GONE = "OSError: [Errno 116] Stale file handle: '/scratch/{user}/run{n}/ckpt.pt'"
AUTO = """
version = "auto-1"
[opt_in]
default = "auto"
[cost]
enabled = false
"""
STORM = AUTO + "[storm]\nmost = 3\nhalf_open_minutes = 30\n[incident]\njobs = 50\n"  # a storm after three resubmits


class ByWord:
    """A classifier that knows a few words; the suspect is the node of the matching line."""

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        return [self._one(case) for case in cases]

    def _one(self, case: RawCase) -> Verdict:
        for stream in case.streams:
            for number, line in enumerate(stream.text.splitlines(), 1):
                word = next((word for word in BY_WORD if word in line), None)
                if word is not None:
                    result = Evidence(line, "initiating", stream.rank, stream.node, stream.stream, number, word)
                    suspect = Suspect(stream.rank, stream.node) if word == "Xid" else None
                    return replace(BY_WORD[word], evidence=(result,), suspect=suspect)
        return replace(GUESS, abstained=True, confidence=0.4, fingerprint="1:open")


def rules(text: str = AUTO) -> Policy:
    return policy.parse(text, "test.toml")


@dataclass
class World:
    store: Store
    clock: FrozenClock
    automation: Automation
    diagnose: Diagnose

    def tell(self, *events: Mapping[str, Any]) -> BatchOutcome:
        return self.diagnose([from_object(one) for one in events])

    def lease(
        self, limit: int = 100, *, cluster: str = "orion", seconds: float = 60, hook: str = "test"
    ) -> list[Lease]:
        return self.automation.lease(hook, cluster, limit=limit, seconds=seconds)

    def done(self, lease: Lease, **answer: Any) -> Request:
        return self.automation.ack(lease.request_id, lease.lease_token, HookAnswer("done", **answer))

    def requests(self, state: RequestState | None = None) -> list[Request]:
        with self.store.reading() as reading:
            return list(reading.requests.page(state=state, limit=500).items)

    def failure(self, job_id: str) -> FailureRow:
        """The failure of the only attempt of a job."""
        with self.store.reading() as reading:
            [attempt] = reading.jobs.attempts("orion", job_id)
            assert attempt.failure_id is not None
            return reading.failures.get(attempt.failure_id).row

    def messages(self, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        with engine_of(self.store).connect() as connection:
            rows = connection.execute(outbox.select().order_by(outbox.c.id)).all()
        return [(row.type, unpack(row.payload)) for row in rows if not kinds or row.type in kinds]

    def wait(self, **span: float) -> None:
        self.clock.at += timedelta(**span)


def world(store: Store, clock: FrozenClock, text: str = AUTO) -> World:
    automation = Automation(store, rules(text), clock, Telemetry())
    diagnose = diagnose_with(
        DiagnosisTools(store, LogFetcher(()), ByWord(), rules(text), clock, Telemetry(), automation=automation)
    )
    return World(store, clock, automation, diagnose)


def job(job_id: str, line: str | None = None, *, at: datetime | None = None, **changes: Any) -> dict[str, Any]:
    """A finished job on cluster orion that ended at `at`; without a `line` it succeeded."""
    ended = at or NOW - timedelta(minutes=1)
    node = changes.get("nodes", ["gpu018"])[0]
    plain: dict[str, Any] = {
        "schema": "job-completion/1",
        "cluster": "orion",
        "job_id": job_id,
        "user": "ana",
        "team": "vision",
        "queue": "gpu",
        "status": "succeeded" if line is None else "failed",
        "gpus": 8,
        "nodes": ["gpu018", "gpu019"],
        "started_at": (ended - timedelta(hours=2)).isoformat(),
        "ended_at": ended.isoformat(),
    }
    if line is not None:
        plain |= {"exit_code": 1, "logs": [{"rank": 0, "node": node, "stream": "stderr", "tail": f"start\n{line}\n"}]}
    return plain | changes


def event(*given: Any, **changes: Any) -> JobCompletion:
    return from_object(job(*given, **changes))


def outage(first: int, count: int, *, at: datetime | None = None, line: str = GONE) -> list[dict[str, Any]]:
    """Jobs of eleven users that one file system failed."""
    ended = at or NOW - timedelta(minutes=1)
    return [
        job(
            str(n),
            line.format(user=f"user{n % 11}", n=n),
            at=ended + timedelta(seconds=n % 30),
            user=f"user{n % 11}",
            nodes=[f"gpu{n:03d}", f"gpu{n + 500:03d}"],
            gpus=8 + n,
        )
        for n in range(first, first + count)
    ]
