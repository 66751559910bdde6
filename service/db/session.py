"""The way into the store: one transaction that writes, one snapshot that reads, and nothing in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from service.clock import Clock, SystemClock
from service.db import retention, schema
from service.db.duties import Duties
from service.db.engine import READING, connect, errors_translated
from service.db.retention import Purged
from service.dead_letters.repository import DeadLetters
from service.deliveries.repository.deliveries import Deliveries
from service.deliveries.repository.digests import Digests
from service.deliveries.repository.endpoints import Endpoints
from service.deliveries.repository.outbox import Outbox
from service.failures.repository.failures import Failures
from service.failures.repository.pending_logs import PendingLogs
from service.failures.repository.verdict_seals import Seals
from service.feedback.repository.applied_fixes import Mended
from service.feedback.repository.feedback import FeedbackRows
from service.groups.repository.groups import Groups
from service.incidents.repository.incidents import Incidents
from service.incidents.repository.signals import Signals
from service.jobs.repository.jobs import Jobs
from service.nodes.repository.events import NodeEvents
from service.nodes.repository.failure_facts import FleetFacts
from service.nodes.repository.repairs import Repairs
from service.nodes.repository.suspicion import Suspicions
from service.nodes.repository.work_queue import FleetWork
from service.people.repository.accounts import Accounts
from service.people.repository.audit_log import Audit
from service.people.repository.tokens import Tokens
from service.reports.repository.reports import Reports
from service.reports.repository.weekly_action_counts import WeeklyActions
from service.reports.repository.weekly_counts import Weekly
from service.requests.repository.advice_history import Advices
from service.requests.repository.decision_history import Decisions
from service.requests.repository.kill_switch import KillSwitch
from service.requests.repository.leases import Leases
from service.requests.repository.lineages import Lineages
from service.requests.repository.outcomes import Outcomes
from service.requests.repository.requests import Requests
from service.requests.repository.storms import Storms
from service.statistics.repository.rollups import Rollups
from service.statistics.repository.statistics import Statistics


class UnitOfWork:
    """The repositories over one connection."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.jobs = Jobs(connection)
        self.failures = Failures(connection, clock)
        self.groups = Groups(connection, clock)
        self.feedback = FeedbackRows(connection, clock)
        self.mended = Mended(connection, clock)
        self.dead_letters = DeadLetters(connection, clock)
        self.outbox = Outbox(connection, clock)
        self.deliveries = Deliveries(connection, clock)
        self.endpoints = Endpoints(connection)
        self.tokens = Tokens(connection, clock)
        self.accounts = Accounts(connection, clock)
        self.audit = Audit(connection, clock)
        self.seals = Seals(connection)
        self.pending_logs = PendingLogs(connection, clock)
        self.statistics = Statistics(connection)
        self.node_events = NodeEvents(connection, clock)
        self.suspicion = Suspicions(connection)
        self.repairs = Repairs(connection, clock)
        self.fleet_facts = FleetFacts(connection)
        self.fleet_work = FleetWork(connection, clock)
        self.weekly = Weekly(connection)
        self.weekly_actions = WeeklyActions(connection)
        self.reports = Reports(connection, clock)
        self.rollups = Rollups(connection)
        self.duties = Duties(connection, clock)
        self.digests = Digests(connection, clock)
        self.advices = Advices(connection, clock)
        self.decisions = Decisions(connection)
        self.requests = Requests(connection, clock)
        self.leases = Leases(connection, clock)
        self.lineages = Lineages(connection, clock)
        self.signals = Signals(connection)
        self.incidents = Incidents(connection, clock)
        self.outcomes = Outcomes(connection, clock)
        self.storms = Storms(connection, clock)
        self.switch = KillSwitch(connection, clock)


class Store:
    """A database that holds everything Faultline knows. Safe to share between threads, not across a fork.

    Args:
        url: `sqlite:///file` (relative) or `sqlite:////file`, or `postgresql://user:password@host:port/name`.
        clock: the source of "now" for rows that carry a time of their own.
        pool_size: connections kept; twice as many at once, and a thread that gets none in 20 s sees `Unavailable`.

    Raises:
        ConfigurationError: the URL is not one of these; names FAULTLINE_DATABASE_URL, never shows credentials.
    """

    def __init__(self, url: str, *, clock: Clock | None = None, pool_size: int = 5) -> None:
        self._clock = clock or SystemClock()
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
        """Which database it is: "sqlite" or "postgresql"."""
        return self._engine.dialect.name

    @contextmanager
    def unit_of_work(self) -> Iterator[UnitOfWork]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises:
            Unavailable: the database does not answer (or is locked); nothing was stored. Where the answer to the
                commit itself was lost it may have been: give the same events again, they are known then.
        """
        with self._connection(self._writing) as connection:
            yield UnitOfWork(connection, self._clock)

    @contextmanager
    def reading(self) -> Iterator[UnitOfWork]:
        """One consistent snapshot; whatever is written in it fails.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._connection(self._reading) as connection:
            yield UnitOfWork(connection, self._clock)

    def upgrade(self) -> tuple[str | None, str | None]:
        """Make the database (SQLite) and bring its schema up to date; the revision before and after.

        Raises:
            Unavailable: no answer, or a lock was not to be had in time; nothing was changed.
            ConfigurationError: the file cannot be made, or the database is newer than this version.
        """
        return schema.upgrade(self._engine)

    def check(self) -> None:
        """Return where the schema is the one this version was written for.

        Raises:
            ConfigurationError: it is not; says which revision is there and what to run.
            Unavailable: the database does not answer.
        """
        schema.check(self._engine)

    def ping(self) -> None:
        """One round trip.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._connection(self._reading) as connection:
            connection.exec_driver_sql("SELECT 1").scalar_one()

    def purge(
        self,
        *,
        rows_before: datetime | None = None,
        logs_before: datetime | None = None,
        verdicts_before: datetime | None = None,
        done_before: datetime | None = None,
    ) -> Purged:
        """Remove what is older than asked, a few hundred rows a transaction, so that nobody waits for it.

        Args:
            rows_before: attempts that ended before, with everything of their failures; their keys stay known.
            logs_before: logs of failures that ended before; the verdicts stay.
            verdicts_before: verdicts' bodies of failures that ended before; the searchable fields stay.
            done_before: outbox messages done, and dead letters received, before.

        Raises:
            Unavailable: the database does not answer; what was removed so far stays removed.
        """
        return retention.purge(
            lambda: self._connection(self._writing),
            rows_before=rows_before,
            logs_before=logs_before,
            verdicts_before=verdicts_before,
            done_before=done_before,
        )

    def close(self) -> None:
        """Give all connections back."""
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
    """Let go of a connection that may be broken half-way: a lost one must not go back to the pool."""
    driver = connection.connection.dbapi_connection if not connection.invalidated and not connection.closed else None
    if driver is not None and getattr(driver, "closed", False):
        try:
            connection.invalidate()
        except SQLAlchemyError:
            return
