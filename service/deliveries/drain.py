"""Delivers messages: assigns outbox messages to endpoints, and sends each endpoint's deliveries."""

import hashlib
import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import get_args

from classifiers.redaction import has_secret, redact, redact_json
from service.backoff import LONGEST_RETRY_AFTER_S, pause_after, scheduled_pause
from service.clock import Clock
from service.db.session import Store
from service.deliveries.channels.channel import Channel, Outcome, OutcomeKind
from service.deliveries.config import Route, Sending
from service.deliveries.records import (
    REPORT_SUBSCRIPTION,
    DueDelivery,
    EndpointState,
    FailureFacts,
    NewDelivery,
    StoredMessage,
)
from service.deliveries.repository.endpoints import paused
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

UNSUBSCRIBE = "unsubscribe"
ROUTE_BATCH = 500
ROUTE_LEASE_S = 30.0
DIGEST_BATCH = 5_000  # what waits for the same digest is leased together: what is left out waits for the next one


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint ready for use. `address` is only compared, to detect a changed one.

    `digest_s`: messages of the same owner (where `to_owner`) and kind of failure are combined, at most one in this
    time; 0: every message is sent separately. `types`: the messages that the endpoint takes at all, whatever the routes
    say; None: all.
    """

    name: str
    routes: tuple[Route, ...]
    channel: Channel
    address: str
    digest_s: float = 0.0
    to_owner: bool = False
    types: frozenset[str] | None = None

    @property
    def address_sha256(self) -> str:
        """The SHA-256 of the address for the store, because the address may be a secret."""
        return hashlib.sha256(self.address.encode()).hexdigest()

    def wants(self, kind: str, payload: Mapping[str, object], facts: FailureFacts | None) -> bool:
        """Whether the endpoint receives this message."""
        if kind == REPORT_SUBSCRIPTION:
            return payload.get("endpoint") == self.name
        if self.types is not None and kind not in self.types:
            return False
        verdict = payload.get("verdict")
        known = verdict if isinstance(verdict, Mapping) else {}
        return not self.routes or any(route.takes(kind, known, facts) for route in self.routes)


class Drain:
    """The delivery steps, for any number of processes at once. Transactions are short, and none is open while sending.

    Args:
        store: preferably its own, so that others do not wait for a connection.
        owner: the unique name of this process.
        chance: random number in 0..1, for the jitter.
    """

    def __init__(
        self,
        store: Store,
        targets: Sequence[Target],
        sending: Sending,
        *,
        owner: str,
        clock: Clock,
        telemetry: Telemetry,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.targets = {target.name: target for target in targets}
        self._store = store
        self._sending = sending
        self._owner = owner
        self._clock = clock
        self._telemetry = telemetry
        self._chance = chance
        for name in self.targets:
            for kind in get_args(OutcomeKind):  # an increase is seen only of a series that was there before
                telemetry.deliveries.labels(name, kind)

    def due(self) -> set[str]:
        """Endpoints with due deliveries that may be tried now, or are to be given up; reads only."""
        now = self._clock.now()
        with self._store.reading() as reading:
            states = reading.endpoints.all()
            return {
                name
                for name, target in self.targets.items()
                if not _paused(states.get(name), target, now) and reading.deliveries.due(name)
            }

    def route(self) -> int:
        """Assign a batch of the outbox to the endpoints; returns the number of messages."""
        with self._store.reading() as reading:
            if not reading.outbox.waiting():
                return 0
        with self._store.unit_of_work() as work:
            messages = work.outbox.lease(self._owner, limit=ROUTE_BATCH, seconds=ROUTE_LEASE_S)
            ids = {found for message in messages if (found := _failure_id(message)) is not None}
            facts = work.deliveries.facts(ids) if ids else {}
            states = work.endpoints.all()
            work.deliveries.add(
                [
                    NewDelivery(message.id, target.name, _refusal(states.get(target.name), target))
                    for message in messages
                    for target in self.targets.values()
                    if target.wants(message.type, message.payload, facts.get(_failure_id(message) or 0))
                ]
            )
            work.outbox.done(self._owner, [message.id for message in messages])
        return len(messages)

    def expire(self) -> int:
        """Abandon deliveries that are too old, and remove digests that are over; returns how many deliveries."""
        limit, now = self._sending.give_up_after_s, self._clock.now()
        with self._store.unit_of_work() as work:
            for target in self.targets.values():
                work.digests.remove_before(target.name, now - timedelta(seconds=target.digest_s))
            work.digests.remove_others_before(self.targets, now - timedelta(seconds=limit))
            return work.deliveries.give_up_older(
                now - timedelta(seconds=limit), f"not delivered within {limit / 3600:g} hours"
            )

    def deliver(self, name: str, stop: threading.Event | None = None) -> int:
        """Send a batch of one endpoint's deliveries; returns how many.

        Deliveries left when `stop` is set are released.
        """
        target = self.targets[name]
        leased, probe_pause = self._lease(target)
        ends = self._clock.monotonic() + self._sending.lease_s
        tried = 0
        parts = self._parts(target, leased)
        for part in parts:
            late = self._clock.monotonic() + self._sending.timeout_s > ends and tried > 0
            if late or (stop is not None and stop.is_set()):
                break
            tried += len(part)
            if target.digest_s and not self._begin_digest(target, part):
                continue
            outcome = _send(target, part)
            if target.digest_s and outcome.kind != "sent":
                with self._store.unit_of_work() as work:
                    work.digests.forget(name, digest_key(part[0], by_owner=target.to_owner))
            if len(part) > 1 and outcome.kind == "refused" and not target.digest_s:
                for one in part:  # a failing message must not stop the others
                    self._record_outcome(target, [one], _send(target, [one]), probe_pause)
            elif not self._record_outcome(target, part, outcome, probe_pause):
                break
        left = [one.message_id for part in parts for one in part][tried:]
        if left:
            with self._store.unit_of_work() as work:
                work.deliveries.release(self._owner, name, left)
        return tried

    def _parts(self, target: Target, leased: list[DueDelivery]) -> list[list[DueDelivery]]:
        """The messages of each request; messages that a digest delays are released until then."""
        if not target.digest_s and not target.to_owner:
            return [leased] if target.channel.bulk and leased else [[one] for one in leased]
        now, parts = self._clock.now(), dict[str, list[DueDelivery]]()
        with self._store.unit_of_work() as work:
            ids = {found for one in leased if (found := _failure_id(one)) is not None}
            facts = work.deliveries.facts(ids) if ids else {}
            for one in leased:
                of = facts.get(_failure_id(one) or 0)
                user = of.user if of else None
                if one.type == REPORT_SUBSCRIPTION:
                    user = one.payload.get("user")
                named = replace(one, payload={**one.payload, "user": user})
                key = digest_key(named, by_owner=target.to_owner) if target.digest_s else str(one.message_id)
                parts.setdefault(key, []).append(named)
            last = work.digests.last_until_now(target.name, parts)
            for key, part in list(parts.items()):
                due = last[key] + timedelta(seconds=target.digest_s) if key in last else now
                if due > now:
                    work.deliveries.wait(self._owner, target.name, [one.message_id for one in part], until=due)
                    del parts[key]
        return list(parts.values())

    def _begin_digest(self, target: Target, part: Sequence[DueDelivery]) -> bool:
        """Whether no other process has sent a message of this digest meanwhile; otherwise these wait for the next."""
        now, key = self._clock.now(), digest_key(part[0], by_owner=target.to_owner)
        with self._store.unit_of_work() as work:
            work.endpoints.lock(target.name, target.address_sha256)
            last = work.digests.last_until_now(target.name, [key]).get(key)
            due = now if last is None else last + timedelta(seconds=target.digest_s)
            if due > now:
                work.deliveries.wait(self._owner, target.name, [one.message_id for one in part], until=due)
                return False
            work.digests.record_sent(target.name, key)
        return True

    def _lease(self, target: Target) -> tuple[list[DueDelivery], datetime | None]:
        """The leased deliveries, and the pause of the endpoint that is due to this process's test delivery alone."""
        now, until = self._clock.now(), None
        with self._store.unit_of_work() as work:
            state = work.endpoints.lock(target.name, target.address_sha256)
            if (refusal := _refusal(state, target)) is not None:  # routed in the moment in which it was disabled
                work.deliveries.give_up_all(target.name, refusal)
            if paused(state, now):
                return [], None
            circuit_open = state.failures >= self._sending.circuit_failures
            limit = DIGEST_BATCH if target.digest_s else 1 if circuit_open else self._sending.batch
            leased = work.deliveries.lease(target.name, self._owner, limit=limit, seconds=self._sending.lease_s)
            if circuit_open and leased:  # one test delivery, by one process
                until = now + timedelta(seconds=self._sending.lease_s)
                work.endpoints.put(replace(state, paused_until=until))
        return [_without_secrets(one) for one in leased], until

    def _record_outcome(
        self, target: Target, part: Sequence[DueDelivery], outcome: Outcome, probe_pause: datetime | None
    ) -> bool:
        """Store the outcome of a request; whether the next one may be sent.

        A pause other than `probe_pause` is due to a later answer to another process: it is kept.
        """
        name, ids = target.name, [one.message_id for one in part]
        self._telemetry.deliveries.labels(name, outcome.kind).inc(len(part))
        with self._store.unit_of_work() as work:
            state = work.endpoints.lock(name, target.address_sha256)
            now = self._clock.now()
            later_pause = state.paused_until if paused(state, now) and state.paused_until != probe_pause else None
            if outcome.kind == "sent":
                work.deliveries.sent(self._owner, name, ids)
                if target.digest_s:
                    work.digests.record_sent(name, digest_key(part[0], by_owner=target.to_owner))
                return self._close_circuit(work.endpoints.put, state, later_pause)
            if outcome.kind == "refused":
                work.deliveries.give_up(self._owner, name, ids, outcome.detail)
                return self._close_circuit(work.endpoints.put, state, later_pause)
            if outcome.kind == "gone":
                work.endpoints.put(replace(state, disabled_at=self._clock.now(), detail=outcome.detail))
                work.deliveries.give_up_all(name, outcome.detail)
                log.warning("endpoint %s is disabled: %s", name, outcome.detail)
                return False
            for one in part:
                pause = scheduled_pause(
                    self._sending.schedule_s,
                    one.attempts + 1,
                    jitter=self._sending.jitter,
                    chance=self._chance(),
                    retry_after_s=outcome.retry_after_s,
                )
                if pause is None:
                    work.deliveries.give_up(self._owner, name, [one.message_id], outcome.detail)
                else:
                    later = now + timedelta(seconds=pause)
                    work.deliveries.retry(self._owner, name, one.message_id, available_at=later, detail=outcome.detail)
            failed = self._failed(state, outcome, now, later_pause)
            work.endpoints.put(failed)
        if state.failures < self._sending.circuit_failures <= failed.failures:
            log.warning("endpoint %s is failing; other endpoints are not affected: %s", name, outcome.detail)
        return not paused(failed, now)

    def _close_circuit(
        self, put: Callable[[EndpointState], None], state: EndpointState, later_pause: datetime | None
    ) -> bool:
        """Reset the circuit breaker, unless a later pause is in force; whether the next request may be sent."""
        if later_pause is not None:
            return False
        if state.failures or state.paused_until is not None:
            put(replace(state, failures=0, paused_until=None, detail=None))
        return True

    def _failed(
        self, state: EndpointState, outcome: Outcome, now: datetime, later_pause: datetime | None
    ) -> EndpointState:
        failures = state.failures + 1
        over = failures - self._sending.circuit_failures + 1
        wait = pause_after(over, self._sending.pause_s, self._sending.longest_pause_s) if over > 0 else 0.0
        if outcome.throttled and outcome.retry_after_s is not None:
            wait = max(wait, min(outcome.retry_after_s, LONGEST_RETRY_AFTER_S))
        until = now + timedelta(seconds=wait) if wait else None
        if later_pause is not None and (until is None or until < later_pause):
            until = later_pause
        return replace(state, failures=failures, paused_until=until, detail=outcome.detail)


def digest_key(message: DueDelivery, *, by_owner: bool) -> str:
    """The key of a digest: the kind of failure and, where each owner gets one, the owner; other messages are single."""
    verdict = message.payload.get("verdict")
    if not isinstance(verdict, Mapping):
        return f"{message.type}\n{message.key}\n{message.message_id}"
    owner = (message.payload.get("user") or "") if by_owner else ""
    return f"{owner}\n{verdict.get('fingerprint') or message.key}"


def _send(target: Target, part: Sequence[DueDelivery]) -> Outcome:
    """The outcome of sending messages; an unexpected error counts as an attempt, or they would be tried for ever.

    The messages of a batch are tried one by one then, except those of a digest, which stay together.
    """
    try:
        return target.channel.send(part)
    except Exception as error:
        log.exception("sending to %s failed", target.name)
        kept = len(part) == 1 or target.digest_s > 0
        return Outcome("retry" if kept else "refused", f"{type(error).__name__} while it was sent")


def _paused(state: EndpointState | None, target: Target, now: datetime) -> bool:
    """Whether deliveries wait for the endpoint; the state of another address does not count.

    None waits for a disabled one: what was routed to it in the moment in which it was disabled is given up.
    """
    return (
        state is not None
        and state.address_sha256 == target.address_sha256
        and state.disabled_at is None
        and paused(state, now)
    )


def _without_secrets(message: DueDelivery) -> DueDelivery:
    """The message as it may leave the service.

    The texts of an event were redacted when it arrived, but not the names of cluster and job, which are its identity.
    The address by which a receiver unsubscribes is a secret that only this receiver gets.
    """
    own = {name: value for name, value in message.payload.items() if name == UNSUBSCRIBE}
    rest = {name: value for name, value in message.payload.items() if name not in own}
    if not has_secret([message.key, rest]):
        return message
    return replace(message, key=redact(message.key), payload=redact_json(rest) | own)


def _failure_id(message: StoredMessage | DueDelivery) -> int | None:
    found = message.payload.get("failure_id")
    return found if isinstance(found, int) else None


def _refusal(state: EndpointState | None, target: Target) -> str | None:
    """Why a new message is refused: the endpoint has rejected all messages at this address."""
    if state is None or state.disabled_at is None or state.address_sha256 != target.address_sha256:
        return None
    return f"the receiver answered 410 and accepts no more messages since {state.disabled_at:%Y-%m-%d %H:%M} UTC"
