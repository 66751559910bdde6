"""A service and a scheduler in memory, which fail, forget and are killed when they are told to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from service.hooks.lease_client import LeaseLost, ServiceUnavailable
from service.hooks.request import Failed, Lease, Ready, Request, SchedulerUnavailable, Settled


class Killed(BaseException):
    """As if by -9: nobody handles it."""


@dataclass
class FakeService:
    """Leases what waits; keeps what it was told, in order."""

    waits: list[Request] = field(default_factory=list)
    received: list[tuple[str, Settled | Failed]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    away: bool = False
    retry_after_s: float = 7.0

    def lease(self, most: int, seconds: int) -> Sequence[Request]:
        del seconds
        self._answer()
        taken, self.waits = self.waits[:most], self.waits[most:]
        return taken

    def waiting(self, most: int) -> Sequence[Request]:
        self._answer()
        return self.waits[:most]

    def ack(self, request_id: str, lease_token: str, settled: Settled) -> None:
        del lease_token
        self._answer()
        self.received.append((request_id, settled))
        if request_id in self.gone:
            raise LeaseLost("409")

    def fail(self, request_id: str, lease_token: str, error: str, retry_after_s: float | None) -> None:
        del lease_token
        self._answer()
        self.received.append((request_id, Failed(error, retry_after_s)))

    def _answer(self) -> None:
        if self.away:
            raise ServiceUnavailable("no answer", self.retry_after_s)


@dataclass
class FakeScheduler:
    """Does each request in two steps; `killed_at`: 1 before the first, 2 between them, 3 after the second."""

    can_look_up: bool = True
    kind: str = "slurm"
    killed_at: int = 0
    away: bool = False
    answers: dict[str, Ready | Settled | Failed] = field(default_factory=dict)
    half: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    looked: list[tuple[str, datetime | None]] = field(default_factory=list)

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        self.looked.append((request.request_id, begun_at))
        if self.away:
            raise SchedulerUnavailable("no answer")
        if request.request_id in self.answers:
            return self.answers[request.request_id]
        if request.request_id in self.done and self.can_look_up:
            return Settled("done", "found")
        return Ready("do it", begun=request.request_id in self.half)

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        self._die(1)
        lease.check()
        self.half.add(request.request_id)
        self._die(2)
        lease.check()
        self.half.discard(request.request_id)
        self.done.append(request.request_id)
        self._die(3)
        return Settled("done", "did it", "8")

    def maintain(self) -> None:
        if self.away:
            raise SchedulerUnavailable("no answer")

    def close(self) -> None: ...

    def _die(self, at: int) -> None:
        if self.killed_at == at:
            self.killed_at = 0
            raise Killed
