"""The main use case: skip known events, fetch logs, classify failures, then store everything in one transaction.

Everything slow or pure happens before the transaction. The transaction inserts the jobs, reads the history that the
advice depends on, advises, and inserts failures and outbox messages. Handling a batch twice changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from classifiers.contracts import InputMeasures, RawCase, Verdict
from service.automation.job_ends import EndedAttempt
from service.automation.request_creation import AdvisedFailure
from service.automation.service import Automation
from service.clock import Clock
from service.contracts.event import CLASSIFIED_STATUSES, JobCompletion, LogRef, Status
from service.contracts.verdict import stored_verdict
from service.contracts.verdict_wire import wire_of
from service.db.session import Store, UnitOfWork
from service.dead_letters.records import DeadLetter
from service.deliveries.records import OutboxMessage
from service.deliveries.verdict_messages import of_verdict
from service.errors import NotFound
from service.failures.records import NewFailure, PendingLog
from service.good_runs.collection import GoodRuns, Logs
from service.good_runs.records import StoredGoodRun
from service.jobs.new_job import content_digest, new_job
from service.jobs.records import JobOutcome, NewJob
from service.log_storage.records import LogsToStore
from service.logs.fetch import FetchedLogs
from service.messaging.batch_result import BatchOutcome, EventOutcome
from service.nodes.settings import FleetSettings
from service.pipeline.cases import case_of, known_before
from service.pipeline.context import in_context
from service.pipeline.event_redaction import cleaned, stored_fields
from service.pipeline.log_storing import next_try, pending_logs, store_logs, streams_before, with_arrived
from service.pipeline.reassessment import ReassessedFailure, Reassessment
from service.pipeline.refine import refine
from service.recommend import event_facts
from service.recommend.advise import advise
from service.recommend.policy import Policy
from service.telemetry import Telemetry


class Classifier(Protocol):
    """The classifier that diagnosis needs (classifiers.diagnoser.Diagnoser)."""

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict per case, in order."""
        ...


@dataclass(slots=True)
class _Item:
    """One new event of the batch."""

    key: str
    event: JobCompletion
    digest: bytes
    logs: FetchedLogs | None = None
    verdict: Verdict | None = None
    stored_logs: LogsToStore = ()


def shows_failure(verdict: Verdict) -> bool:
    """Whether a cancelled job's log shows that it failed before it was cancelled."""
    return verdict.cause != "USER.5" and any(
        line.role == "initiating" and line.stream != "scheduler" for line in verdict.evidence
    )


class Diagnose:
    """Handles batches of events, and later the logs that were missing."""

    def __init__(
        self,
        store: Store,
        logs: Logs,
        classifier: Classifier,
        policy: Policy,
        clock: Clock,
        telemetry: Telemetry,
        log_deadline_s: float = 60.0,
        fleet: FleetSettings | None = None,
        automation: Automation | None = None,
        good_runs: GoodRuns | None = None,
    ) -> None:
        self._store = store
        self._good_runs = good_runs or GoodRuns(logs)
        self._reassessment = Reassessment(store, clock, fleet or FleetSettings())
        self._logs = logs
        self._classifier = classifier
        self._policy = policy
        self._clock = clock
        self._telemetry = telemetry
        self._log_deadline_s = log_deadline_s
        self._automation = automation

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        """Handle a batch; see `handle`."""
        return self.handle(events, dead)

    def handle(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
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

    def revise_pending(self, limit: int = 50) -> int:
        """Try to fetch missing logs again; returns the number of revised verdicts.

        Raises:
            Unavailable: the database does not answer.
        """
        now = self._clock.now()
        with self._store.unit_of_work() as work:
            entries = work.pending_logs.due(limit=limit)
            for entry in entries:  # reserved: no other process tries it before then
                work.pending_logs.defer(entry.attempt_id, next_at=next_try(entry, now))
        return sum(self._revise(entry) for entry in entries)

    def revise_late(self, limit: int = 100) -> int:
        """Reassess failures with new evidence from nodes or other failures; returns the number of revised verdicts.

        Raises:
            Unavailable: the database does not answer.
        """
        return sum(self._tell_again(one) for one in self._reassessment.due(limit))

    def _classify(self, fresh: Sequence[_Item]) -> list[StoredGoodRun]:
        """Set the verdicts of the failed jobs; returns the good runs of the others."""
        for item in fresh:
            item.event = cleaned(item.event)
        good = self._good_runs.of_successes([item.event for item in fresh], self._log_deadline_s)
        failed = [item for item in fresh if item.event.status in CLASSIFIED_STATUSES]
        if not failed:
            return good
        with self._timed("logs"):
            fetched = self._logs.fetch_all([item.event for item in failed], self._log_deadline_s)
        for item, logs in zip(failed, fetched, strict=True):
            item.logs = logs
        before = known_before(self._store, [item.event for item in failed])
        with self._timed("classify"):
            verdicts = self._classifier.diagnose(
                [
                    case_of(item.event, item.logs.streams, known)
                    for item, known in zip(failed, before, strict=True)
                    if item.logs
                ]
            )
        verdicts = refine(self._store, [item.event for item in failed], verdicts)
        with self._timed("context"):
            verdicts = in_context(self._store, [item.event for item in failed], verdicts, before)
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
        wires: dict[str, dict[str, Any]] = {}
        added: list[NewFailure] = []
        measures: dict[int, InputMeasures | None] = {}
        messages: list[OutboxMessage] = []
        pending: list[PendingLog] = []
        joined: list[tuple[JobOutcome, _Item, dict[str, Any]]] = []
        advised = self._advised(work, diagnosed, items, outcomes)
        for given, job, outcome in zip(items, jobs, outcomes, strict=True):
            item = diagnosed.get(given.key)
            if outcome.kind != "new" or item is None or item.verdict is None or outcome.id is None:
                continue
            wire = self._wire(item, item.verdict, advised.get(outcome.id))
            wires[item.key] = wire
            if outcome.opens:
                added.append(NewFailure(outcome, job, wire, item.stored_logs, stored_fields(item.event)))
                measures[outcome.id] = item.verdict.measures
                messages.append(of_verdict("failure.diagnosed", outcome.failure_id, wire))
            else:
                joined.append((outcome, item, wire))
            if item.logs is not None and outcome.failure_id is not None:
                pending += pending_logs(outcome.failure_id, outcome.id, item.event, item.logs, self._clock.now())
        if added:
            work.failures.add(added)
            work.drift.add(measures)
            if self._automation is not None:
                first_advice = [(advised[new.outcome.id], 1) for new in added if new.outcome.id in advised]
                self._automation.store_advice(work, first_advice)
        for outcome, item, wire in joined:
            revised_wire = self._join(work, outcome, item, wire, advised.get(outcome.id or 0))
            if revised_wire is not None:
                messages.append(of_verdict("failure.revised", outcome.failure_id, revised_wire))
        if pending:
            work.pending_logs.add(pending)
        if messages:
            work.outbox.add(messages)
        return wires

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

    def _join(
        self,
        work: UnitOfWork,
        outcome: JobOutcome,
        item: _Item,
        wire: Mapping[str, Any],
        advised: AdvisedFailure | None,
    ) -> Mapping[str, Any] | None:
        """Add another attempt of a job with a failure: its verdict replaces the failure's only if it is more certain.

        The end of a controller, after those of its pods, shows that nothing else retries the job: then the advice may
        change.
        """
        if outcome.failure_id is None or outcome.id is None:
            return None
        failure_id, streams = outcome.failure_id, item.stored_logs
        standing = work.failures.get(failure_id)
        now = standing.row
        better = (not wire["abstained"], wire["confidence"]) > (not now.abstained, now.confidence)
        if not better and self._automation is not None and item.event.pod is None and standing.verdict is not None:
            old_verdict = stored_verdict(standing.verdict)
            advised = self._automation.advise_revised(
                work, EndedAttempt(outcome.id, item.event, old_verdict, failure_id)
            )
            revised_wire = self._wire(item, old_verdict, advised)
            better = any(revised_wire[name] != standing.verdict.get(name) for name in ("decision", "mode", "action"))
            wire = revised_wire
        if not better:
            work.failures.attach(failure_id, outcome.id, streams, stored_fields(item.event))
            return None
        version = work.failures.revise(
            failure_id, wire, attempt_id=outcome.id, streams=streams, event=stored_fields(item.event)
        )
        return wire if self._stands(work, failure_id, wire, advised, version) else None

    def _stands(
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

    def _again(
        self, work: UnitOfWork, failure_id: int, attempt_id: int, event: JobCompletion, verdict: Verdict
    ) -> tuple[dict[str, Any], AdvisedFailure | None]:
        """A revised verdict as wire data, with its advice."""
        end = EndedAttempt(attempt_id, event, verdict, failure_id)
        advised = None if self._automation is None else self._automation.advise_revised(work, end)
        return self._wire(_Item(event.key(), event, b""), verdict, advised), advised

    def _wire(self, item: _Item, verdict: Verdict, advised: AdvisedFailure | None = None) -> dict[str, Any]:
        if advised is None:
            known = event_facts.without_history(item.event, self._clock.now(), self._policy)
            advice = advise(verdict, item.event.facts(), known, self._policy)
        else:
            advice = advised.advice
        return wire_of(
            verdict,
            advice,
            event_id=item.key,
            cluster=item.event.cluster,
            job_id=item.event.job_id,
            attempt=item.event.attempt,
        )

    def _revise(self, entry: PendingLog) -> bool:
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
        [logs] = self._logs.fetch_all([wanted], self._log_deadline_s)
        if logs.pending and self._clock.now() < entry.until:
            return False
        streams = with_arrived(earlier, logs.streams)
        if streams is None:
            return self._nothing_new(entry)
        known = known_before(self._store, [stored])
        case = case_of(stored, streams, known[0])
        [verdict] = refine(self._store, [stored], self._classifier.diagnose([case]))
        [verdict] = in_context(self._store, [stored], [verdict], known)
        [stored_logs] = store_logs(self._store, [(stored, streams)])
        with self._store.unit_of_work() as work:
            wire, advised = self._again(work, entry.failure_id, entry.attempt_id, stored, verdict)
            version = work.failures.revise(
                entry.failure_id, wire, attempt_id=entry.attempt_id, streams=stored_logs, event=before.event
            )
            work.drift.replace(entry.failure_id, verdict.measures)
            work.pending_logs.done(entry.attempt_id)
            if self._stands(work, entry.failure_id, wire, advised, version):
                work.outbox.add([of_verdict("failure.revised", entry.failure_id, wire)])
        if version is None:
            return False
        self._telemetry.revisions.inc()
        return True

    def _nothing_new(self, entry: PendingLog) -> bool:
        with self._store.unit_of_work() as work:
            work.pending_logs.done(entry.attempt_id)
        return False

    def _tell_again(self, again: ReassessedFailure) -> bool:
        version = None
        with suppress(NotFound), self._store.unit_of_work() as work:
            detail = work.failures.get(again.failure_id)
            events = [(logs.attempt_id, JobCompletion.model_validate(logs.event)) for logs in detail.logs]
            stored = next((one for one in events if one[1].key() == again.event_id), None)
            if stored is not None and detail.row.version == again.version:
                wire, advised = self._again(work, again.failure_id, *stored, again.verdict)
                version = work.failures.revise(again.failure_id, wire)
                if self._stands(work, again.failure_id, wire, advised, version):
                    work.outbox.add([of_verdict("failure.revised", again.failure_id, wire)])
        self._reassessment.done([again.failure_id])
        if version is not None:
            self._telemetry.revisions.inc()
        return version is not None

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
            self._telemetry.events.labels(kind).inc()
            if item.event.intake_problems:
                self._telemetry.event_problems.labels(item.event.intake_source or "file").inc()
            if verdict is not None:
                self._telemetry.verdicts.labels(verdict["side"], str(verdict["abstained"]).lower()).inc()
        if letters:
            self._telemetry.dead_letters.inc(len(letters))
        return BatchOutcome(tuple(events), letters)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = self._clock.monotonic()
        yield
        self._telemetry.stage_seconds.labels(stage).observe(self._clock.monotonic() - started)
