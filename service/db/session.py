"""Access to the database: sessions that read one snapshot, and units of work that write in one transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from service.clock import Clock, SystemClock
from service.db import log_months, retention, schema
from service.db.engine import READING, connect, errors_translated
from service.db.retention import PurgeResult
from service.db.task_leases import TaskLeaseReader, TaskLeaseRepository
from service.dead_letters.repository import DeadLetterReader, DeadLetterRepository
from service.deliveries.repository.deliveries import DeliveryReader, DeliveryRepository
from service.deliveries.repository.digests import DigestRepository
from service.deliveries.repository.endpoints import EndpointReader, EndpointRepository
from service.deliveries.repository.outbox import OutboxReader, OutboxRepository
from service.drift.repository import DriftReader, DriftRepository
from service.failures.repository.failures import FailureReader, FailureRepository
from service.failures.repository.listing import IdRangeReader
from service.failures.repository.pending_logs import PendingLogRepository
from service.failures.repository.signature_hits import SignatureHitReader
from service.failures.repository.verdict_seals import VerdictSealReader, VerdictSealRepository
from service.feedback.repository.audit_samples import AuditReader, AuditRepository
from service.feedback.repository.feedback import FeedbackReader, FeedbackRepository
from service.feedback.repository.group_labels import GroupLabelReader, GroupLabelRepository
from service.fixes.repository import AppliedFixReader, AppliedFixRepository
from service.good_runs.repository import GoodRunReader, GoodRunRepository
from service.goodput.repository.reader import GoodputReader
from service.groups.repository.groups import GroupReader, GroupRepository
from service.incidents.repository.incident_signals import IncidentSignalReader, IncidentSignalRepository
from service.incidents.repository.incidents import IncidentReader, IncidentRepository
from service.jobs.repository.jobs import JobReader, JobRepository
from service.learning.repository.reclassification_runs import ReclassificationRunReader, ReclassificationRunRepository
from service.learning.repository.site_layers import SiteLayerReader, SiteLayerRepository
from service.log_storage.log_bodies import DatabaseLogs, LogBodies
from service.nodes.repository.events import NodeEventReader, NodeEventRepository
from service.nodes.repository.failure_facts import FailureFactReader, FailureFactRepository
from service.nodes.repository.repairs import RepairReader, RepairRepository
from service.nodes.repository.suspicion import SuspicionReader, SuspicionRepository
from service.nodes.repository.work_queue import NodeWorkReader, NodeWorkRepository
from service.people.repository.accounts import AccountReader, AccountRepository
from service.people.repository.audit_log import AuditLogReader, AuditLogRepository
from service.people.repository.login_attempts import LoginAttemptReader, LoginAttemptRepository
from service.people.repository.saved_views import SavedViewReader, SavedViewRepository
from service.people.repository.sessions import SessionReader, SessionRepository
from service.people.repository.tokens import TokenReader, TokenRepository
from service.reports.repository.reports import ReportReader, ReportRepository
from service.reports.repository.subscriptions import SubscriptionReader, SubscriptionRepository
from service.reports.repository.weekly_action_counts import WeeklyActionCountReader
from service.reports.repository.weekly_counts import WeeklyCountReader
from service.reports.repository.weekly_job_counts import WeeklyJobReader
from service.resubmissions.repository.decision_history import AdviceReader, AdviceRepository, DecisionReader
from service.resubmissions.repository.funnel import FunnelReader
from service.resubmissions.repository.kill_switch import KillSwitchReader, KillSwitchRepository
from service.resubmissions.repository.leases import LeaseReader, LeaseRepository
from service.resubmissions.repository.lineages import LineageReader, LineageRepository
from service.resubmissions.repository.outcomes import OutcomeReader, OutcomeRepository
from service.resubmissions.repository.requests import RequestReader, RequestRepository
from service.resubmissions.repository.storms import StormReader, StormRepository
from service.second_reader.repository import SecondReadingReader, SecondReadingRepository
from service.statistics.count_cache import CountCache
from service.statistics.repository.rollups import RollupRepository
from service.statistics.repository.statistics import StatisticsReader

R = TypeVar("R")


def _part(make: Callable[[Connection], R]) -> "cached_property[R]":
    """A reader or repository of a session, made at its first use."""
    return cached_property(lambda self: make(self._connection))


def _timed_part(make: Callable[[Connection, Clock], R]) -> "cached_property[R]":
    """The same of one that reads the time."""
    return cached_property(lambda self: make(self._connection, self._clock))


class ReadSession:
    """The readers of all domains over one connection: one consistent snapshot, no method that writes."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        audit_key: bytes | None = None,
        log_bodies: LogBodies | None = None,
        count_cache: CountCache | None = None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._audit_key = audit_key
        self._log_bodies = log_bodies
        self._count_cache = count_cache

    jobs = _part(JobReader)
    good_runs = _part(GoodRunReader)
    failures = cached_property(lambda self: FailureReader(self._connection, self._clock, self._log_bodies))
    failure_ranges = _part(IdRangeReader)
    groups = _timed_part(GroupReader)
    feedback = _timed_part(FeedbackReader)
    group_labels = _timed_part(GroupLabelReader)
    audit_samples = _timed_part(AuditReader)
    applied_fixes = _timed_part(AppliedFixReader)
    site_layers = _timed_part(SiteLayerReader)
    reclassification_runs = _timed_part(ReclassificationRunReader)
    drift = _timed_part(DriftReader)
    dead_letters = _timed_part(DeadLetterReader)
    outbox = _timed_part(OutboxReader)
    deliveries = _timed_part(DeliveryReader)
    endpoints = _part(EndpointReader)
    tokens = _timed_part(TokenReader)
    accounts = _timed_part(AccountReader)
    sessions = _timed_part(SessionReader)
    login_attempts = _timed_part(LoginAttemptReader)
    saved_views = _timed_part(SavedViewReader)
    audit_log = cached_property(lambda self: AuditLogReader(self._connection, self._clock, self._audit_key))
    verdict_seals = _part(VerdictSealReader)
    signature_hits = _part(SignatureHitReader)
    statistics = cached_property(lambda self: StatisticsReader(self._connection, self._count_cache))
    goodput = _part(GoodputReader)
    node_events = _timed_part(NodeEventReader)
    suspicion = _part(SuspicionReader)
    repairs = _timed_part(RepairReader)
    failure_facts = _part(FailureFactReader)
    node_work = _timed_part(NodeWorkReader)
    weekly_counts = _part(WeeklyCountReader)
    weekly_job_counts = _part(WeeklyJobReader)
    weekly_action_counts = _part(WeeklyActionCountReader)
    reports = _timed_part(ReportReader)
    report_subscriptions = _timed_part(SubscriptionReader)
    task_leases = _timed_part(TaskLeaseReader)
    advice_history = _timed_part(AdviceReader)
    decision_history = _part(DecisionReader)
    requests = _timed_part(RequestReader)
    leases = _timed_part(LeaseReader)
    lineages = _timed_part(LineageReader)
    incident_signals = _part(IncidentSignalReader)
    incidents = _timed_part(IncidentReader)
    outcomes = _timed_part(OutcomeReader)
    funnel = _part(FunnelReader)
    storms = _timed_part(StormReader)
    kill_switch = _timed_part(KillSwitchReader)
    second_readings = _part(SecondReadingReader)


class UnitOfWork(ReadSession):
    """The repositories of all domains over one connection: one transaction that reads and writes."""

    jobs = _part(JobRepository)
    good_runs = _part(GoodRunRepository)
    failures = cached_property(lambda self: FailureRepository(self._connection, self._clock, self._log_bodies))
    groups = _timed_part(GroupRepository)
    feedback = _timed_part(FeedbackRepository)
    group_labels = _timed_part(GroupLabelRepository)
    audit_samples = _timed_part(AuditRepository)
    applied_fixes = _timed_part(AppliedFixRepository)
    site_layers = _timed_part(SiteLayerRepository)
    reclassification_runs = _timed_part(ReclassificationRunRepository)
    drift = _timed_part(DriftRepository)
    dead_letters = _timed_part(DeadLetterRepository)
    outbox = _timed_part(OutboxRepository)
    deliveries = _timed_part(DeliveryRepository)
    endpoints = _part(EndpointRepository)
    digests = _timed_part(DigestRepository)
    tokens = _timed_part(TokenRepository)
    accounts = _timed_part(AccountRepository)
    sessions = _timed_part(SessionRepository)
    login_attempts = _timed_part(LoginAttemptRepository)
    saved_views = _timed_part(SavedViewRepository)
    audit_log = cached_property(lambda self: AuditLogRepository(self._connection, self._clock, self._audit_key))
    verdict_seals = _part(VerdictSealRepository)
    pending_logs = _timed_part(PendingLogRepository)
    rollups = _part(RollupRepository)
    node_events = _timed_part(NodeEventRepository)
    suspicion = _part(SuspicionRepository)
    repairs = _timed_part(RepairRepository)
    failure_facts = _part(FailureFactRepository)
    node_work = _timed_part(NodeWorkRepository)
    reports = _timed_part(ReportRepository)
    report_subscriptions = _timed_part(SubscriptionRepository)
    task_leases = _timed_part(TaskLeaseRepository)
    advice_history = _timed_part(AdviceRepository)
    requests = _timed_part(RequestRepository)
    leases = _timed_part(LeaseRepository)
    lineages = _timed_part(LineageRepository)
    incident_signals = _part(IncidentSignalRepository)
    incidents = _timed_part(IncidentRepository)
    outcomes = _timed_part(OutcomeRepository)
    storms = _timed_part(StormRepository)
    kill_switch = _timed_part(KillSwitchRepository)
    second_readings = _part(SecondReadingRepository)


class Store:
    """The database of Faultline. Safe to share between threads, not across a fork.

    Args:
        url: `sqlite:///file` (relative) or `sqlite:////file`, or `postgresql://user:password@host:port/name`.
        clock: the source of the times in new rows.
        audit_key: the key of the audit log's hashes; None: they need no key.
        pool_size: connections kept open; at most twice as many are used. Waiting over 20 s raises `Unavailable`.
        log_bodies: where the log texts are; None: in this database.

    Raises:
        ConfigurationError: the URL is invalid; the message never shows credentials.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        pool_size: int = 5,
        audit_key: bytes | None = None,
        log_bodies: LogBodies | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self.log_bodies = log_bodies or DatabaseLogs()
        self._audit_key = audit_key
        self._count_cache = CountCache()
        self._engine = connect(url, pool_size=pool_size)
        self._writing = self._engine
        self._reading = self._engine.execution_options(
            **{READING: True},
            **(
                {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
                if self._engine.dialect.name == "postgresql"
                else {}
            ),
        )

    @property
    def dialect(self) -> str:
        """The name of the database: "sqlite" or "postgresql"."""
        return self._engine.dialect.name

    @contextmanager
    def unit_of_work(self) -> Iterator[UnitOfWork]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises:
            Unavailable: the database does not answer (or is locked); nothing was stored. If the answer to the
                commit was lost, rows may be stored: submit the same events again; they are recognised.
        """
        with self._connection(self._writing) as connection:
            yield UnitOfWork(connection, self._clock, self._audit_key, self.log_bodies)

    @contextmanager
    def reading(self) -> Iterator[ReadSession]:
        """One consistent snapshot. The connection is read-only too: the database refuses any write.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._connection(self._reading) as connection:
            yield ReadSession(connection, self._clock, self._audit_key, self.log_bodies, self._count_cache)

    def upgrade(self) -> tuple[str | None, str | None]:
        """Create the database file (SQLite) and upgrade the schema; returns the revisions before and after.

        Raises:
            Unavailable: no answer, or a lock was not to be had in time; nothing was changed.
            ConfigurationError: the file cannot be created, or the database is newer than this version.
        """
        return schema.upgrade(self._engine)

    def check(self) -> None:
        """Return where the schema is the one this version was written for.

        Raises:
            ConfigurationError: it has another revision; the message names it and the command to run.
            Unavailable: the database does not answer.
        """
        schema.check(self._engine)

    def check_for_changes(self) -> None:
        """`check`, for a command that changes what the audit log records.

        Raises:
            ConfigurationError: as `check`; or the key of the audit log is missing.
            Unavailable: the database does not answer.
        """
        self.check()
        with self.reading() as reading:
            reading.audit_log.check_key()

    def prepare_months(self) -> None:
        """Create the partitions of logs for this month and the next ones (PostgreSQL); see `log_months.create`.

        Raises:
            Unavailable: the database does not answer, or a lock was not free in time.
        """
        log_months.create(lambda: self._connection(self._writing), self._clock.now())

    def purge(
        self,
        *,
        rows_before: datetime | None = None,
        logs_before: datetime | None = None,
        verdicts_before: datetime | None = None,
        done_before: datetime | None = None,
    ) -> PurgeResult:
        """Remove old rows, a few hundred in each transaction, so that other transactions do not wait.

        Args:
            rows_before: remove attempts that ended before, with their failures; their keys are kept.
            logs_before: remove logs of attempts that ended before; events and verdicts are kept.
            verdicts_before: remove verdict bodies of failures that ended before; the searchable fields are kept.
            done_before: remove outbox messages completed, and dead letters received, before.

        Raises:
            Unavailable: the database does not answer; rows removed so far stay removed.
        """
        return retention.purge(
            lambda: self._connection(self._writing),
            rows_before=rows_before,
            logs_before=logs_before,
            verdicts_before=verdicts_before,
            done_before=done_before,
        )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        with errors_translated(self._engine), engine.connect() as connection:
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                _abandon(connection)
                raise


def _abandon(connection: Connection) -> None:
    """Discard a connection that may be broken: a lost connection must not return to the pool."""
    driver = connection.connection.dbapi_connection if not connection.invalidated and not connection.closed else None
    if driver is not None and getattr(driver, "closed", False):
        try:
            connection.invalidate()
        except SQLAlchemyError:
            return
