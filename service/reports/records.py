"""Values that queries of the weekly report return and its figures use."""

from dataclasses import dataclass
from datetime import datetime

from service.statistics.records import Scope

EVERYTHING = Scope()  # the scope of the report of all clusters and teams


@dataclass(frozen=True, slots=True)
class Amount:
    """Failed attempts and the GPU-hours they lost; `squares` is the sum of the squared GPU-hours of each."""

    failures: int = 0
    gpu_hours: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a GPU-hour, as an operator set it."""

    gpu_hour: float
    currency: str

    def of(self, gpu_hours: float) -> str:
        """What GPU-hours cost, with the currency; without decimals."""
        return f"{gpu_hours * self.gpu_hour:,.0f}\u00a0{self.currency}"


@dataclass(frozen=True, slots=True)
class PublishedReport:
    """A line of the list of published reports: the newest version of a week, of all jobs or of a scope."""

    week: str
    version: int
    published_at: datetime
    by: str
    scope: Scope = EVERYTHING


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A wish to receive the report of a scope every week.

    `endpoint` names the endpoint of deliveries that sends it, `recipient` the user in its address (None: a channel).
    `mail`: whether the endpoint sends mail, which carries the whole report as HTML.
    """

    endpoint: str
    recipient: str | None
    scope: Scope
    mail: bool = False


@dataclass(frozen=True, slots=True)
class Subscription(NewSubscription):
    """A stored subscription. Whoever has the `token` may end it; `last_week` is the newest week that was sent."""

    id: int = 0
    token: str = ""
    created_at: datetime | None = None
    created_by: str = ""
    last_week: str = ""
