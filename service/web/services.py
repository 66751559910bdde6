"""What the web part is given: plain values and the few objects it asks; built by the composition root."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import ip_address
from typing import Annotated, Any, Protocol, cast
from zoneinfo import ZoneInfo

from fastapi import Depends, Request

from service.automation.service import Automation
from service.clock import Clock
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.failures.records import Visibility
from service.feedback.advisor import Advisor
from service.feedback.service import Feedback
from service.formats import recognise
from service.formats.read_outcome import Skipped
from service.groups.count_updater import GroupCountUpdater
from service.groups.service import GroupService
from service.messaging.batch_result import BatchHandler
from service.nodes.event_intake import NodeEventIntake
from service.nodes.settings import FleetSettings
from service.people.config import LoginMethods
from service.recommend import policy
from service.reports.document import Report
from service.reports.publish import ReportService
from service.requests.records import TallyRow
from service.stale_cache import StaleCache
from service.telemetry import Telemetry


class Parse(Protocol):
    """Bytes of any known format → an event (service.formats.recognise.parse)."""

    def __call__(
        self, value: bytes | None, headers: Sequence[tuple[str, bytes]] = (), *, cluster: str | None = None
    ) -> JobCompletion | Skipped:
        """Read one record.

        Raises:
            UnreadableRecord: says which field is wrong.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The classifier in use. `manifest` is what stands beside the trained model, shown as it is."""

    name: str
    rules: str
    manifest: Mapping[str, Any] = field(default_factory=dict)


Tallies = tuple[datetime, tuple[TallyRow, ...]]  # when they were counted


def unrestricted() -> Visibility | None:
    """No narrowing: everybody's failures are seen."""
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """Everything the API and the pages need.

    Args:
        store: the database.
        ingest: the one callable that batches of events are handed to; it returns after the commit.
        clock: the present.
        telemetry: counted here, shown at /metrics.
        host: the address the server is bound to; anything but loopback makes API tokens compulsory.
        timezone: IANA name; the zone in which pages show times and read dates.
        settings: the settings in force as text, without secrets.
        model: the classifier, None where none is loaded (then the service is not ready).
        parse: how a record is read.
        people: how people log in beside tokens and local accounts.
        viewer: whose failures the one who asks may see; of the running request, set by `services_of`.
        lag: records by topic not yet stored, None where this process does not consume; default: the metric's values.
        feedback_service: takes what people say of verdicts; default: one that advises by the built-in policy.
        node_events: takes what nodes say; default: one with the fleet's default settings.
        automation: what is done by itself; default: one by the built-in policy.
        report_drafts: reports of large weeks that nobody published, as they were up to minutes ago.
        printed_reports: reports in print.
        outcome_tallies: how resubmits ended, as counted up to minutes ago.
    """

    store: Store
    ingest: BatchHandler
    clock: Clock
    telemetry: Telemetry
    host: str = "127.0.0.1"
    timezone: str = "UTC"
    settings: Mapping[str, str] = field(default_factory=dict)
    model: ModelInfo | None = None
    parse: Parse = recognise.parse
    lag: Callable[[], Mapping[str, int] | None] | None = None
    people: LoginMethods = field(default_factory=LoginMethods)
    viewer: Callable[[], Visibility | None] = unrestricted
    feedback_service: Feedback | None = None
    node_events: NodeEventIntake | None = None
    automation: Automation | None = None
    report_drafts: StaleCache[Report] = field(default_factory=StaleCache)
    printed_reports: StaleCache[bytes] = field(default_factory=StaleCache)
    outcome_tallies: StaleCache[Tallies] = field(default_factory=StaleCache)

    @property
    def automation_service(self) -> Automation:
        """What is done by itself."""
        return self.automation or Automation(self.store, policy.built_in(), self.clock, self.telemetry)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def zone(self) -> ZoneInfo:
        """The zone of pages and dates."""
        return ZoneInfo(self.timezone)

    @property
    def group_service(self) -> GroupService:
        """What people do to groups of failures."""
        return GroupService(self.store, self.clock)

    @property
    def group_counts(self) -> GroupCountUpdater:
        """Keeps the groups up to date; called where a person waits to see what was just done."""
        return GroupCountUpdater(self.store, self.clock)

    @property
    def feedback(self) -> Feedback:
        """Takes what people say of verdicts."""
        if self.feedback_service is not None:
            return self.feedback_service
        return Feedback(self.store, self.clock, Advisor(policy.built_in(), self.clock), zone=self.zone)

    @property
    def node_event_intake(self) -> NodeEventIntake:
        """Takes what nodes say, and what people do to them."""
        return self.node_events or NodeEventIntake(self.store, self.clock, FleetSettings())

    @property
    def reports(self) -> ReportService:
        """The weekly quality reports."""
        return ReportService(self.store, self.zone, self.clock, self.report_drafts)

    def lag_by_topic(self) -> Mapping[str, int] | None:
        """Records by topic that are not yet stored; None where this process does not know."""
        if self.lag is not None:
            return self.lag()
        samples = [sample for metric in self.telemetry.lag.collect() for sample in metric.samples]
        return {sample.labels["topic"]: int(sample.value) for sample in samples} or None


def is_loopback(host: str) -> bool:
    """Whether an address to bind to is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def services_of(request: Request) -> Services:
    """The services of the running application, failure_query to what the one who asks may see (known once they are)."""

    def viewer() -> Visibility | None:
        principal = getattr(request.state, "principal", None)
        return None if principal is None else cast("Visibility | None", principal.visible)

    return replace(cast("Services", request.app.state.services), viewer=viewer)


InjectedServices = Annotated[Services, Depends(services_of)]
