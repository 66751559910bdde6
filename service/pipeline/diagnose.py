"""The main use case: skip known events, fetch logs, classify failures, then store everything in one transaction.

Everything slow or pure happens before the transaction. The transaction inserts the jobs, reads the history that the
advice depends on, advises, and inserts failures and outbox messages. Handling a batch twice changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from classifiers.case_builder import unknown_kind
from classifiers.contracts import Verdict
from service.automation.job_ends import EndedAttempt
from service.automation.request_creation import AdvisedFailure
from service.contracts.event import CLASSIFIED_STATUSES, JobCompletion, Status
from service.db.session import UnitOfWork
from service.dead_letters.records import DeadLetter
from service.deliveries.records import OutboxMessage, verdict_message
from service.failures.records import NewFailure, PendingLog
from service.good_runs.collection import GoodRuns
from service.good_runs.repository import StoredGoodRun
from service.jobs.new_job import content_digest, new_job
from service.jobs.records import JobOutcome, NewJob
from service.log_storage.records import LogsToStore
from service.logs.fetch import FetchedLogs
from service.messaging.batch_result import BatchOutcome, EventOutcome
from service.pipeline.classification import verdicts_of, with_earlier
from service.pipeline.diagnosis_tools import DiagnosisTools, advised_wire
from service.pipeline.event_redaction import cleaned, stored_fields
from service.pipeline.log_storing import pending_logs, store_logs
from service.pipeline.revision import FurtherAttempt, Revision


@dataclass(slots=True)
class _Item:
    """One new event of the batch."""

    key: str
    event: JobCompletion
    digest: bytes
    logs: FetchedLogs | None = None
    verdict: Verdict | None = None
    stored_logs: LogsToStore = ()

    def lacks_log(self) -> bool:
        """Whether a log could not be read; those of kinds that are never read do not count."""
        missing = sum(one.missing is not None for one in self.logs.streams) if self.logs is not None else 0
        return missing > sum(unknown_kind(ref.kind) is not None for ref in self.event.logs)


@dataclass(frozen=True, slots=True)
class _NewVerdict:
    """A new attempt that has a verdict; `advised` is None without automation."""

    outcome: JobOutcome
    attempt_id: int
    job: NewJob
    item: _Item
    verdict: Verdict
    wire: dict[str, Any]
    advised: AdvisedFailure | None


def shows_failure(verdict: Verdict) -> bool:
    """Whether a cancelled job's log shows that it failed before it was cancelled."""
    return verdict.cause != "USER.5" and any(
        line.role == "initiating" and line.stream != "scheduler" for line in verdict.evidence
    )


class Diagnose:
    """Handles batches of events.

    Args:
        tools: what it shares with the revision of stored verdicts.
        revision: revises the verdict of a failure by a further attempt of the same job.
        good_runs: reads the logs of jobs that succeeded.
    """

    def __init__(self, tools: DiagnosisTools, revision: Revision, good_runs: GoodRuns) -> None:
        self._tools = tools
        self._store = tools.store
        self._clock = tools.clock
        self._automation = tools.automation
        self._revision = revision
        self._good_runs = good_runs

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        """Diagnose and store a batch in one transaction; returns after the commit.

        Raises:
            Unavailable: the database does not answer; nothing was stored, the batch may be handled again.
        """
        items = [_Item(event.key(), event, content_digest(event)) for event in events]
        with self._timed("known"), self._store.reading() as reading:
            known = reading.jobs.known({item.key for item in items})
        fresh = list({item.key: item for item in reversed(items) if item.key not in known}.values())[::-1]
        good = self._classify(fresh)
        diagnosed = {item.key: item for item in fresh}
        with self._timed("store"), self._store.unit_of_work() as work:
            work.good_runs.put(good)
            jobs = [self._row(item, diagnosed.get(item.key)) for item in items]
            outcomes = work.jobs.add(jobs)
            wires = self._store_failures(work, diagnosed, items, jobs, outcomes)
            letters = tuple(work.dead_letters.add(dead)) if dead else ()
        return self._outcome(items, outcomes, wires, letters)

    def _classify(self, fresh: Sequence[_Item]) -> list[StoredGoodRun]:
        """Set the verdicts of the failed jobs; returns the good runs of the others."""
        for item in fresh:
            item.event = cleaned(item.event).without_unset_times()
        good = self._good_runs.of_successes([item.event for item in fresh], self._tools.log_deadline_s)
        failed = [item for item in fresh if item.event.status in CLASSIFIED_STATUSES]
        if not failed:
            return good
        with self._timed("logs"):
            fetched = self._tools.logs.fetch_all([item.event for item in failed], self._tools.log_deadline_s)
        for item, logs in zip(failed, fetched, strict=True):
            item.logs = logs
        read = [(item.event, logs.streams) for item, logs in zip(failed, fetched, strict=True)]
        verdicts = verdicts_of(self._store, self._tools.classifier, with_earlier(self._store, read), timed=self._timed)
        for item, verdict in zip(failed, verdicts, strict=True):
            if item.event.status is not Status.CANCELLED or shows_failure(verdict):
                item.verdict = verdict
        with self._timed("log_storage"):
            shown = [item for item in failed if item.verdict is not None and item.logs is not None]
            stored = store_logs(self._store, [(item.event, item.logs.streams) for item in shown if item.logs])
        for item, logs_to_store in zip(shown, stored, strict=True):
            item.stored_logs = logs_to_store
        return good

    def _row(self, item: _Item, diagnosed: _Item | None) -> NewJob:
        verdict = diagnosed.verdict if diagnosed is not None and diagnosed.digest == item.digest else None
        return new_job(
            item.event, now=self._clock.now(), diagnosed=verdict is not None, digest=item.digest, key=item.key
        )

    def _store_failures(
        self,
        work: UnitOfWork,
        diagnosed: Mapping[str, _Item],
        items: Sequence[_Item],
        jobs: Sequence[NewJob],
        outcomes: Sequence[JobOutcome],
    ) -> dict[str, dict[str, Any]]:
        """Store the verdicts of the new attempts; returns the verdict/1 of each by its event id."""
        advised = self._advised(work, diagnosed, items, outcomes)
        new: list[_NewVerdict] = []
        for given, job, outcome in zip(items, jobs, outcomes, strict=True):
            item = diagnosed.get(given.key)
            if outcome.kind != "new" or item is None or item.verdict is None or outcome.id is None:
                continue
            advice = advised.get(outcome.id)
            wire = advised_wire(
                item.event, item.verdict, advice, event_id=item.key, policy=self._tools.policy, now=self._clock.now()
            )
            new.append(_NewVerdict(outcome, outcome.id, job, item, item.verdict, wire, advice))
        messages = self._open(work, [one for one in new if one.outcome.opens])
        messages += self._join(work, [one for one in new if not one.outcome.opens])
        if pending := [log for one in new for log in self._pending_logs(one)]:
            work.pending_logs.add(pending)
        if messages:
            work.outbox.add(messages)
        return {one.item.key: one.wire for one in new}

    def _open(self, work: UnitOfWork, new: Sequence[_NewVerdict]) -> list[OutboxMessage]:
        """Store the attempts that open a failure; returns the messages about them."""
        if not new:
            return []
        work.failures.add(
            [
                NewFailure(one.outcome, one.job, one.wire, one.item.stored_logs, stored_fields(one.item.event))
                for one in new
            ]
        )
        work.drift.add({one.attempt_id: one.verdict.measures for one in new})
        if self._automation is not None:
            self._automation.store_advice(work, [(one.advised, 1) for one in new if one.advised is not None])
        return [verdict_message("failure.diagnosed", one.outcome.failure_id, one.wire) for one in new]

    def _join(self, work: UnitOfWork, new: Sequence[_NewVerdict]) -> list[OutboxMessage]:
        """Add further attempts to their failures; returns the messages about verdicts that these revise."""
        messages: list[OutboxMessage] = []
        for one in new:
            failure_id, item = one.outcome.failure_id, one.item
            if failure_id is None:
                continue
            further = FurtherAttempt(
                failure_id, one.attempt_id, item.event, item.key, one.wire, one.advised, item.stored_logs
            )
            revised = self._revision.add_attempt(work, further)
            if revised is not None:
                messages.append(verdict_message("failure.revised", failure_id, revised))
        return messages

    def _pending_logs(self, new: _NewVerdict) -> list[PendingLog]:
        """The notes which logs of a new attempt to fetch later."""
        failure_id, item = new.outcome.failure_id, new.item
        if item.logs is None or failure_id is None:
            return []
        return pending_logs(failure_id, new.attempt_id, item.event, item.logs, self._clock.now())

    def _advised(
        self, work: UnitOfWork, diagnosed: Mapping[str, _Item], items: Sequence[_Item], outcomes: Sequence[JobOutcome]
    ) -> dict[int, AdvisedFailure]:
        """The advice by attempt id; all new ends are reported to the automation, also those of successful jobs."""
        if self._automation is None:
            return {}
        ends = [
            EndedAttempt(outcome.id, item.event, item.verdict, outcome.failure_id)
            for given, outcome in zip(items, outcomes, strict=True)
            if outcome.kind == "new" and outcome.id is not None and (item := diagnosed.get(given.key)) is not None
        ]
        return self._automation.advise(work, ends)

    def _outcome(
        self,
        items: Sequence[_Item],
        outcomes: Sequence[JobOutcome],
        wires: Mapping[str, Mapping[str, Any]],
        letters: tuple[int, ...],
    ) -> BatchOutcome:
        events = []
        for item, outcome in zip(items, outcomes, strict=True):
            kind = "accepted" if outcome.kind == "new" else outcome.kind
            verdict = wires.get(item.key) if outcome.kind == "new" else None
            events.append(EventOutcome(kind, item.key, outcome.failure_id, verdict))
            self._tools.telemetry.events.labels(kind).inc()
            if item.event.intake_problems:
                self._tools.telemetry.event_problems.labels(item.event.intake_source or "file").inc()
            if verdict is not None:
                self._tools.telemetry.verdicts.labels(verdict["side"], str(verdict["abstained"]).lower()).inc()
                self._tools.telemetry.logs_missing.inc(item.lacks_log())
        if letters:
            self._tools.telemetry.dead_letters.inc(len(letters))
        return BatchOutcome(tuple(events), letters)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = self._clock.monotonic()
        yield
        self._tools.telemetry.stage_seconds.labels(stage).observe(self._clock.monotonic() - started)
