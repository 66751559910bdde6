"""Dependencies of the web application, built by the composition root."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, cast
from zoneinfo import ZoneInfo

from fastapi import Depends, Request

from service.automation.service import Automation
from service.clock import Clock
from service.db.session import ReadSession, Store
from service.deliveries.config import ReportReceiver
from service.failures.records import Visibility
from service.failures.repository.signature_hits import HitCounts
from service.feedback.service import Feedback
from service.goodput.records import ComparedGoodput, TrendPart
from service.groups.count_updater import GroupCountUpdater
from service.groups.service import GroupService
from service.headlines.headline import OwnTitles
from service.internet_addresses import is_loopback
from service.learning.promotion import Promotions
from service.messaging.batch_result import BatchHandler
from service.nodes.event_intake import NodeEventIntake
from service.people.login_methods import LoginMethods
from service.people.repository.accounts import Account
from service.reports.document import Report
from service.reports.publish import ReportService
from service.reports.subscriptions import Subscriptions
from service.resubmissions.records import TallyRow
from service.resubmissions.repository.funnel import Funnel
from service.signatures.signature_folder import SignatureFolder
from service.stale_cache import StaleCache
from service.telemetry import Telemetry
from service.web.limits.caller_limits import (
    ActionLimits,
    ConcurrencyLimit,
    RateLimit,
    code_limit,
    export_limit,
    live_limit,
    pdf_limit,
    replay_limit,
)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The classifier in use.

    Attributes:
        name: gives name and version of the model: they change when a site layer is promoted or rolled back.
        rules: gives the version of the rules: it changes when an operator's signatures are read again.
        manifest: the manifest of the trained model, shown unchanged.
    """

    name: Callable[[], str]
    rules: Callable[[], str]
    manifest: Mapping[str, Any] = field(default_factory=dict)


REFUSALS_STORED = 10  # of one caller in a minute, so that they do not fill the database
Tallies = tuple[datetime, tuple[TallyRow, ...]]  # time of counting, and the counts


def unrestricted() -> Visibility | None:
    """No restriction: all failures are visible."""
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """Dependencies of the API and the pages.

    Args:
        store: the database.
        ingest: handles a batch of events; returns after the commit.
        clock: source of the current time.
        telemetry: metrics, served at /metrics.
        automation: resubmissions and incidents.
        feedback: records feedback on verdicts.
        promotions: puts site layers in use.
        node_event_intake: records node events and repairs.
        host: the address the server is bound to; beyond loopback, API tokens are required.
        timezone: IANA name of the zone in which pages show times and read dates.
        settings: the effective settings as text, without secrets.
        model: the classifier; None if none is loaded (the service is then not ready).
        topics: the topics of events, each with the cluster of records that name none.
        node_event_topics: the same for node events.
        people: login methods in addition to tokens and local accounts.
        sole_person: whom a service without a login serves, such as the owner of jobs in the demo; None: an operator.
        intake_limit: requests of the intake by each token or account; default: no limit.
        action_limits: how often one caller may do the same.
        exports: the exports that run now.
        live_updates: the pages that receive live updates now.
        replays: the replays of policies that run now.
        pdfs: the reports that are printed now.
        codes: the codes of the identity provider that are checked now, by address.
        viewer: the failures visible to the caller of the current request; set by `services_of`.
        report_drafts: cache of unpublished reports of large weeks.
        printed_reports: cache of rendered PDF reports.
        report_receivers: the endpoints that people can subscribe to the weekly report.
        goodput_figures: cache of goodput figures of periods with many jobs, beside the periods before them.
        goodput_summaries: the same for the overview, which does not wait for it.
        gpu_hour_price: price of a GPU-hour in `gpu_hour_currency`; None: no costs are shown.
        outcome_tallies: cache of outcomes of resubmissions.
        funnels: cache of the funnel of automatic resubmission.
        signatures: the signatures in use; None: the packaged ones.
        signature_hits: cache of the hits of signatures.
        token_addresses: tokens and the addresses that they were used from, as this process knows.
        stored_refusals: limits how many refused requests of one caller are stored in a minute.
        session: the snapshot that all reads share; None: each read has its own. Set by `snapshot`.
    """

    store: Store
    ingest: BatchHandler
    clock: Clock
    telemetry: Telemetry
    automation: Automation
    feedback: Feedback
    promotions: Promotions
    node_event_intake: NodeEventIntake
    host: str = "127.0.0.1"
    timezone: str = "UTC"
    settings: Mapping[str, str] = field(default_factory=dict)
    model: ModelInfo | None = None
    topics: Mapping[str, str] = field(default_factory=dict)
    node_event_topics: Mapping[str, str] = field(default_factory=dict)
    people: LoginMethods = field(default_factory=LoginMethods)
    sole_person: Account | None = None
    intake_limit: RateLimit = field(default_factory=RateLimit)
    action_limits: ActionLimits = field(default_factory=ActionLimits)
    exports: ConcurrencyLimit = field(default_factory=export_limit)
    live_updates: ConcurrencyLimit = field(default_factory=live_limit)
    replays: ConcurrencyLimit = field(default_factory=replay_limit)
    pdfs: ConcurrencyLimit = field(default_factory=pdf_limit)
    codes: ConcurrencyLimit = field(default_factory=code_limit)
    viewer: Callable[[], Visibility | None] = unrestricted
    report_drafts: StaleCache[Report] = field(default_factory=StaleCache)
    printed_reports: StaleCache[bytes] = field(default_factory=StaleCache)
    report_receivers: tuple[ReportReceiver, ...] = ()
    goodput_figures: StaleCache[ComparedGoodput] = field(default_factory=StaleCache)
    goodput_summaries: StaleCache[tuple[TrendPart, TrendPart]] = field(default_factory=StaleCache)
    gpu_hour_price: float | None = None
    gpu_hour_currency: str = "USD"
    outcome_tallies: StaleCache[Tallies] = field(default_factory=StaleCache)
    funnels: StaleCache[tuple[datetime, Funnel]] = field(default_factory=StaleCache)
    signatures: SignatureFolder | None = None
    signature_hits: StaleCache[tuple[datetime, HitCounts]] = field(default_factory=StaleCache)
    token_addresses: set[tuple[str, str]] = field(default_factory=set)
    stored_refusals: RateLimit = field(default_factory=lambda: RateLimit(REFUSALS_STORED))
    session: ReadSession | None = None

    @contextmanager
    def reading(self) -> Iterator[ReadSession]:
        """The shared snapshot, or else a new one.

        Raises:
            Unavailable: the database does not answer.
        """
        if self.session is not None:
            yield self.session
            return
        with self.store.reading() as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator["Services"]:
        """These services with all reads from one snapshot of the database, so that the figures of a page agree.

        Nothing in the block may read `store` itself: a page that holds one connection while it waits for another
        one can block all pages.

        Raises:
            Unavailable: the database does not answer.
        """
        with self.reading() as session:
            yield replace(self, session=session)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def own_titles(self) -> OwnTitles | None:
        """What finds the label of the own signature that a line matches; None without own signatures."""
        return None if self.signatures is None else self.signatures.current().label_of

    @property
    def zone(self) -> ZoneInfo:
        """The zone of pages and dates."""
        return ZoneInfo(self.timezone)

    @property
    def group_service(self) -> GroupService:
        """Actions on groups of failures."""
        return GroupService(self.store, self.clock)

    @property
    def group_counts(self) -> GroupCountUpdater:
        """Updates the counts of groups; called if a person waits to see the result of an action."""
        return GroupCountUpdater(self.store, self.clock)

    @property
    def reports(self) -> ReportService:
        """The weekly quality reports."""
        price = (self.gpu_hour_price, self.gpu_hour_currency)
        return ReportService(self.store, self.zone, self.clock, self.report_drafts, price=price)

    @property
    def subscriptions(self) -> Subscriptions:
        """Subscriptions of the weekly report."""
        return Subscriptions(self.store, self.zone, self.clock, self.report_receivers)

    def lag_by_topic(self) -> Mapping[str, int] | None:
        """Records not yet stored, by topic; None if this process does not know."""
        samples = [sample for metric in self.telemetry.lag.collect() for sample in metric.samples]
        return {sample.labels["topic"]: int(sample.value) for sample in samples} or None


async def services_of(request: Request) -> Services:
    """The services of the application, limited to what the authenticated caller may see."""

    def viewer() -> Visibility | None:
        principal = getattr(request.state, "principal", None)
        return None if principal is None else cast("Visibility | None", principal.visible)

    return replace(cast("Services", request.app.state.services), viewer=viewer)


InjectedServices = Annotated[Services, Depends(services_of)]
