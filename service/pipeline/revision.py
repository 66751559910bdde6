"""Revises stored verdicts: by another attempt of the job, by logs that arrived late, and by new evidence."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from classifiers.contracts import LogStream
from service.automation.job_ends import EndedAttempt
from service.automation.request_creation import AdvisedFailure
from service.contracts.event import JobCompletion, LogRef
from service.contracts.verdict import stored_verdict
from service.db.session import UnitOfWork
from service.deliveries.records import verdict_message
from service.errors import NotFound, Unavailable
from service.failures.records import AttemptLogs, FailureDetail, FailureRow, PendingLog
from service.log_storage.records import LogsToStore
from service.pipeline.classification import verdicts_of, with_earlier
from service.pipeline.diagnosis_tools import DiagnosisTools, advised_wire
from service.pipeline.event_redaction import stored_fields
from service.pipeline.log_storing import next_try, store_logs, streams_before, with_arrived
from service.pipeline.reassessment import ReassessedFailure, Reassessment

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FurtherAttempt:
    """A further attempt of a job with a failure, with its verdict and advice."""

    failure_id: int
    attempt_id: int
    event: JobCompletion
    event_id: str
    wire: Mapping[str, Any]
    advised: AdvisedFailure | None
    stored_logs: LogsToStore


_Replacement = tuple[Mapping[str, Any], AdvisedFailure | None]  # a new verdict/1 of a failure, and its advice


class Revision:
    """Revises stored verdicts.

    Args:
        tools: what it shares with the diagnosis of new events.
    """

    def __init__(self, tools: DiagnosisTools) -> None:
        self._tools = tools
        self._store = tools.store
        self._clock = tools.clock
        self._automation = tools.automation
        self._reassessment = Reassessment(tools.store, tools.clock)

    def revise_by_late_logs(self, limit: int = 50) -> int:
        """Try to fetch missing logs again; returns the number of revised verdicts.

        Raises:
            Unavailable: the database does not answer.
        """
        now = self._clock.now()
        with self._store.unit_of_work() as work:
            entries = work.pending_logs.due(limit=limit)
            for entry in entries:  # reserved: no other process tries it before then
                work.pending_logs.defer(entry.attempt_id, next_at=next_try(entry, now))
        return sum(self._try_late_logs(entry) for entry in entries)

    def revise_by_new_evidence(self, limit: int = 100) -> int:
        """Reassess failures with new evidence from nodes or other failures; returns the number of revised verdicts.

        Raises:
            Unavailable: the database does not answer.
        """
        return sum(self._try_reassessment(one) for one in self._reassessment.due(limit))

    def add_attempt(self, work: UnitOfWork, added: FurtherAttempt) -> Mapping[str, Any] | None:
        """Add an attempt to its failure: its verdict replaces the failure's only if it is more certain.

        The end of a controller, after those of its pods, shows that nothing else retries the job: then the advice may
        change.

        Returns:
            The new verdict/1 of the failure; None if it stays as it is.
        """
        failure_id, attempt_id, event = added.failure_id, added.attempt_id, stored_fields(added.event)
        current = work.failures.get(failure_id)
        if _is_more_certain(added.wire["confidence"], current.row, abstained=added.wire["abstained"]):
            replacement: _Replacement | None = (added.wire, added.advised)
        else:
            replacement = self._new_advice(work, added, current)
        if replacement is None:
            work.failures.attach(failure_id, attempt_id, added.stored_logs, event)
            return None
        wire, advised = replacement
        version = work.failures.revise(failure_id, wire, attempt_id=attempt_id, streams=added.stored_logs, event=event)
        return wire if self._store_advice(work, failure_id, wire, advised, version) else None

    def _new_advice(self, work: UnitOfWork, added: FurtherAttempt, current: FailureDetail) -> _Replacement | None:
        """The failure's own verdict with new advice after the end of a controller; None if the advice is the same."""
        if self._automation is None or added.event.pod is not None or current.verdict is None:
            return None
        before = current.verdict
        wire, advised = self._advised_again(
            work,
            EndedAttempt(added.attempt_id, added.event, stored_verdict(before), added.failure_id),
            added.event_id,
        )
        same = all(wire[name] == before.get(name) for name in ("decision", "mode", "action"))
        return None if same else (wire, advised)

    def _advised_again(
        self, work: UnitOfWork, end: EndedAttempt, event_id: str
    ) -> tuple[dict[str, Any], AdvisedFailure | None]:
        """The verdict on an end as wire data, with new advice."""
        assert end.verdict is not None, "only ends with a verdict are revised"
        advised = None if self._automation is None else self._automation.advise_revised(work, end)
        wire = advised_wire(
            end.event, end.verdict, advised, event_id=event_id, policy=self._tools.policy, now=self._clock.now()
        )
        return wire, advised

    def _store_advice(
        self,
        work: UnitOfWork,
        failure_id: int,
        wire: Mapping[str, Any],
        advised: AdvisedFailure | None,
        version: int | None,
    ) -> bool:
        """Withdraw requests that a revised verdict does not support and store the new advice; whether it was stored."""
        if version is not None and self._automation is not None:
            self._automation.withdraw_unsupported(work, {failure_id: wire})
            if advised is not None:
                self._automation.store_advice(work, [(advised, version)], revised=True)
        return version is not None

    def _try_late_logs(self, entry: PendingLog) -> bool:
        """See `_read_late_logs`; a log at which this fails delays no other, and is given up at the end of its time."""
        try:
            return self._read_late_logs(entry)
        except NotFound:  # retention has removed the failure
            return self._nothing_new(entry)
        except Unavailable:
            raise
        except Exception:
            log.exception("the logs of attempt %d, which arrived late, cannot be processed", entry.attempt_id)
            return False if self._clock.now() < entry.until else self._nothing_new(entry)

    def _read_late_logs(self, entry: PendingLog) -> bool:
        with self._store.reading() as reading:
            detail = reading.failures.get(entry.failure_id)
        before = next((logs for logs in detail.logs if logs.attempt_id == entry.attempt_id), None)
        if before is None:
            return self._nothing_new(entry)
        stored = JobCompletion.model_validate(before.event)
        wanted = stored.model_copy(update={"logs": tuple(LogRef.model_validate(ref) for ref in entry.refs)})
        earlier = streams_before(before)
        if earlier is None:
            return False
        [logs] = self._tools.logs.fetch_all([wanted], self._tools.log_deadline_s)
        if logs.pending and self._clock.now() < entry.until:
            return False
        streams = with_arrived(earlier, logs.streams)
        if streams is None:
            return self._nothing_new(entry)
        return self._revise_by_streams(entry, before, stored, streams)

    def _revise_by_streams(
        self, entry: PendingLog, before: AttemptLogs, stored: JobCompletion, streams: Sequence[LogStream]
    ) -> bool:
        [verdict] = verdicts_of(self._store, self._tools.classifier, with_earlier(self._store, [(stored, streams)]))
        [stored_logs] = store_logs(self._store, [(stored, streams)])
        with self._store.unit_of_work() as work:
            if not work.pending_logs.done(entry.attempt_id):
                return False  # another process has stored them, or retention has removed the failure
            current = work.failures.get(entry.failure_id)
            more_certain = _is_more_certain(verdict.confidence, current.row, abstained=verdict.abstained)
            if _is_of_other_attempt(current, stored.key()) and not more_certain:
                work.failures.attach(entry.failure_id, entry.attempt_id, stored_logs, before.event)
                return False
            wire, advised = self._advised_again(
                work, EndedAttempt(entry.attempt_id, stored, verdict, entry.failure_id), stored.key()
            )
            version = work.failures.revise(
                entry.failure_id, wire, attempt_id=entry.attempt_id, streams=stored_logs, event=before.event
            )
            work.drift.replace(entry.failure_id, verdict.measures)
            if self._store_advice(work, entry.failure_id, wire, advised, version):
                work.outbox.add([verdict_message("failure.revised", entry.failure_id, wire)])
        return self._count_if_stored(version)

    def _nothing_new(self, entry: PendingLog) -> bool:
        with self._store.unit_of_work() as work:
            work.pending_logs.done(entry.attempt_id)
        return False

    def _try_reassessment(self, again: ReassessedFailure) -> bool:
        """See `_revise_reassessed`; a failure at which this fails delays no other, and is not tried for ever."""
        try:
            return self._revise_reassessed(again)
        except Unavailable:
            raise
        except Exception:
            log.exception("failure %d cannot be revised by new evidence", again.failure_id)
            self._reassessment.done([again])
            return False

    def _revise_reassessed(self, again: ReassessedFailure) -> bool:
        version = None
        with suppress(NotFound), self._store.unit_of_work() as work:
            detail = work.failures.get(again.failure_id)
            events = [(logs.attempt_id, JobCompletion.model_validate(logs.event)) for logs in detail.logs]
            stored = next((one for one in events if one[1].key() == again.event_id), None)
            if stored is not None and detail.row.version == again.version:
                wire, advised = self._advised_again(
                    work, EndedAttempt(*stored, again.verdict, again.failure_id), again.event_id
                )
                # A version that another process has stored since, such as that of a late log, stays.
                stored_now = work.failures.revise_unchanged({again.failure_id: (again.version, wire)})
                version = again.version + 1 if stored_now else None
                if self._store_advice(work, again.failure_id, wire, advised, version):
                    work.outbox.add([verdict_message("failure.revised", again.failure_id, wire)])
        self._reassessment.done([again])
        return self._count_if_stored(version)

    def _count_if_stored(self, version: int | None) -> bool:
        """Whether a new version was stored; it is counted then."""
        if version is not None:
            self._tools.telemetry.revisions.inc()
        return version is not None


def _is_more_certain(confidence: float, current: FailureRow, *, abstained: bool) -> bool:
    """Whether a verdict is more certain than the one of a failure: decided, or else with a higher confidence."""
    return (not abstained, confidence) > (not current.abstained, current.confidence)


def _is_of_other_attempt(current: FailureDetail, event_id: str) -> bool:
    """Whether the verdict of a failure is on another of its attempts than that of this event."""
    return current.verdict is not None and current.verdict.get("event_id") != event_id
