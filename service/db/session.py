"""Access to the database: sessions that read one snapshot, and units of work that write in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from service.clock import Clock, SystemClock
from service.db import log_months, retention, schema
from service.db.engine import READING, connect, errors_translated
from service.db.retention import PurgeResult
from service.db.task_leases import TaskLeaseReader, TaskLeaseRepository
from service.dead_letters.repository import DeadLetterReader, DeadLetterRepository
from service.deliveries.repository.deliveries import DeliveryReader, DeliveryRepository
from service.deliveries.repository.digests import DigestReader, DigestRepository
from service.deliveries.repository.endpoints import EndpointReader, EndpointRepository
from service.deliveries.repository.outbox import OutboxReader, OutboxRepository
from service.drift.repository import DriftReader, DriftRepository
from service.failures.repository.failures import FailureReader, FailureRepository
from service.failures.repository.id_ranges import IdRangeReader
from service.failures.repository.pending_logs import PendingLogRepository
from service.failures.repository.signature_hits import SignatureHitReader
from service.failures.repository.verdict_seals import VerdictSealReader, VerdictSealRepository
from service.feedback.repository.applied_fixes import AppliedFixReader, AppliedFixRepository
from service.feedback.repository.audits import AuditReader, AuditRepository
from service.feedback.repository.feedback import FeedbackReader, FeedbackRepository
from service.feedback.repository.group_labels import GroupLabelReader, GroupLabelRepository
from service.good_runs.repository import GoodRunReader, GoodRunRepository
from service.goodput.repository.reader import GoodputReader
from service.groups.repository.groups import GroupReader, GroupRepository
from service.incidents.repository.incidents import IncidentReader, IncidentRepository
from service.incidents.repository.signals import IncidentSignalReader, IncidentSignalRepository
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
from service.people.repository.sessions import SessionReader, SessionRepository
from service.people.repository.tokens import TokenReader, TokenRepository
from service.reports.repository.reports import ReportReader, ReportRepository
from service.reports.repository.subscriptions import SubscriptionReader, SubscriptionRepository
from service.reports.repository.weekly_action_counts import WeeklyActionCountReader
from service.reports.repository.weekly_counts import WeeklyCountReader
from service.reports.repository.weekly_job_counts import WeeklyJobReader
from service.requests.repository.advice_history import AdviceReader, AdviceRepository
from service.requests.repository.decision_history import DecisionReader
from service.requests.repository.funnel import FunnelReader
from service.requests.repository.kill_switch import KillSwitchReader, KillSwitchRepository
from service.requests.repository.leases import LeaseReader, LeaseRepository
from service.requests.repository.lineages import LineageReader, LineageRepository
from service.requests.repository.outcomes import OutcomeReader, OutcomeRepository
from service.requests.repository.requests import RequestReader, RequestRepository
from service.requests.repository.storms import StormReader, StormRepository
from service.second_reader.repository import SecondReadingReader, SecondReadingRepository
from service.statistics.repository.rollups import RollupRepository
from service.statistics.repository.statistics import StatisticsReader


class ReadSession:
    """The readers of all domains over one connection: one consistent snapshot, no method that writes."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        audit_key: bytes | None = None,
        log_bodies: LogBodies | None = None,
    ) -> None:
        self.jobs = JobReader(connection)
        self.good_runs = GoodRunReader(connection)
        self.failures = FailureReader(connection, clock, log_bodies)
        self.failure_ranges = IdRangeReader(connection)
        self.groups = GroupReader(connection, clock)
        self.feedback = FeedbackReader(connection, clock)
        self.group_labels = GroupLabelReader(connection, clock)
        self.audit_samples = AuditReader(connection, clock)
        self.applied_fixes = AppliedFixReader(connection, clock)
        self.site_layers = SiteLayerReader(connection, clock)
        self.reclassification_runs = ReclassificationRunReader(connection, clock)
        self.drift = DriftReader(connection, clock)
        self.dead_letters = DeadLetterReader(connection, clock)
        self.outbox = OutboxReader(connection, clock)
        self.deliveries = DeliveryReader(connection, clock)
        self.endpoints = EndpointReader(connection)
        self.digests = DigestReader(connection, clock)
        self.tokens = TokenReader(connection, clock)
        self.accounts = AccountReader(connection, clock)
        self.sessions = SessionReader(connection, clock)
        self.audit_log = AuditLogReader(connection, clock, audit_key)
        self.verdict_seals = VerdictSealReader(connection)
        self.signature_hits = SignatureHitReader(connection)
        self.statistics = StatisticsReader(connection)
        self.goodput = GoodputReader(connection)
        self.node_events = NodeEventReader(connection, clock)
        self.suspicion = SuspicionReader(connection)
        self.repairs = RepairReader(connection, clock)
        self.failure_facts = FailureFactReader(connection)
        self.node_work = NodeWorkReader(connection, clock)
        self.weekly_counts = WeeklyCountReader(connection)
        self.weekly_job_counts = WeeklyJobReader(connection)
        self.weekly_action_counts = WeeklyActionCountReader(connection)
        self.reports = ReportReader(connection, clock)
        self.report_subscriptions = SubscriptionReader(connection, clock)
        self.task_leases = TaskLeaseReader(connection, clock)
        self.advice_history = AdviceReader(connection, clock)
        self.decision_history = DecisionReader(connection)
        self.requests = RequestReader(connection, clock)
        self.leases = LeaseReader(connection, clock)
        self.lineages = LineageReader(connection, clock)
        self.incident_signals = IncidentSignalReader(connection)
        self.incidents = IncidentReader(connection, clock)
        self.outcomes = OutcomeReader(connection, clock)
        self.funnel = FunnelReader(connection)
        self.storms = StormReader(connection, clock)
        self.kill_switch = KillSwitchReader(connection, clock)
        self.second_readings = SecondReadingReader(connection)


class UnitOfWork(ReadSession):
    """The repositories of all domains over one connection: one transaction that reads and writes."""

    jobs: JobRepository
    good_runs: GoodRunRepository
    failures: FailureRepository
    groups: GroupRepository
    feedback: FeedbackRepository
    group_labels: GroupLabelRepository
    audit_samples: AuditRepository
    applied_fixes: AppliedFixRepository
    site_layers: SiteLayerRepository
    reclassification_runs: ReclassificationRunRepository
    drift: DriftRepository
    dead_letters: DeadLetterRepository
    outbox: OutboxRepository
    deliveries: DeliveryRepository
    endpoints: EndpointRepository
    digests: DigestRepository
    tokens: TokenRepository
    accounts: AccountRepository
    sessions: SessionRepository
    audit_log: AuditLogRepository
    verdict_seals: VerdictSealRepository
    node_events: NodeEventRepository
    suspicion: SuspicionRepository
    repairs: RepairRepository
    failure_facts: FailureFactRepository
    node_work: NodeWorkRepository
    reports: ReportRepository
    report_subscriptions: SubscriptionRepository
    task_leases: TaskLeaseRepository
    advice_history: AdviceRepository
    requests: RequestRepository
    leases: LeaseRepository
    lineages: LineageRepository
    incident_signals: IncidentSignalRepository
    incidents: IncidentRepository
    outcomes: OutcomeRepository
    storms: StormRepository
    kill_switch: KillSwitchRepository
    second_readings: SecondReadingRepository

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        audit_key: bytes | None = None,
        log_bodies: LogBodies | None = None,
    ) -> None:
        super().__init__(connection, clock, audit_key, log_bodies)
        self.jobs = JobRepository(connection)
        self.good_runs = GoodRunRepository(connection)
        self.failures = FailureRepository(connection, clock, log_bodies)
        self.groups = GroupRepository(connection, clock)
        self.feedback = FeedbackRepository(connection, clock)
        self.group_labels = GroupLabelRepository(connection, clock)
        self.audit_samples = AuditRepository(connection, clock)
        self.applied_fixes = AppliedFixRepository(connection, clock)
        self.site_layers = SiteLayerRepository(connection, clock)
        self.reclassification_runs = ReclassificationRunRepository(connection, clock)
        self.drift = DriftRepository(connection, clock)
        self.dead_letters = DeadLetterRepository(connection, clock)
        self.outbox = OutboxRepository(connection, clock)
        self.deliveries = DeliveryRepository(connection, clock)
        self.endpoints = EndpointRepository(connection)
        self.digests = DigestRepository(connection, clock)
        self.tokens = TokenRepository(connection, clock)
        self.accounts = AccountRepository(connection, clock)
        self.sessions = SessionRepository(connection, clock)
        self.audit_log = AuditLogRepository(connection, clock, audit_key)
        self.verdict_seals = VerdictSealRepository(connection)
        self.pending_logs = PendingLogRepository(connection, clock)
        self.rollups = RollupRepository(connection)
        self.node_events = NodeEventRepository(connection, clock)
        self.suspicion = SuspicionRepository(connection)
        self.repairs = RepairRepository(connection, clock)
        self.failure_facts = FailureFactRepository(connection)
        self.node_work = NodeWorkRepository(connection, clock)
        self.reports = ReportRepository(connection, clock)
        self.report_subscriptions = SubscriptionRepository(connection, clock)
        self.task_leases = TaskLeaseRepository(connection, clock)
        self.advice_history = AdviceRepository(connection, clock)
        self.requests = RequestRepository(connection, clock)
        self.leases = LeaseRepository(connection, clock)
        self.lineages = LineageRepository(connection, clock)
        self.incident_signals = IncidentSignalRepository(connection)
        self.incidents = IncidentRepository(connection, clock)
        self.outcomes = OutcomeRepository(connection, clock)
        self.storms = StormRepository(connection, clock)
        self.kill_switch = KillSwitchRepository(connection, clock)
        self.second_readings = SecondReadingRepository(connection)


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
            yield ReadSession(connection, self._clock, self._audit_key, self.log_bodies)

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
