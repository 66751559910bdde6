"""Groups as they come out of the store: plain frozen dataclasses, no SQL."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

GroupState = Literal["new", "ongoing", "escalating", "regressed", "resolved", "muted"]
GroupSort = Literal["-last_at", "-gpu_hours_lost"]
FacetKind = Literal["cluster", "queue", "team", "user", "node"]
SplitField = Literal["cluster", "queue", "team", "user", "node"]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One line of the groups list. Counts are of all failures that ever belonged to it.

    `recent`, `expected` and `chance` say why it escalates: failures in the last hours, how many its own past leads one
    to expect in them, and the chance of as many or more. `muted_failures` and `muted_users` are the counts at which
    the mute ends.
    """

    id: int
    fingerprint: str
    state: GroupState
    state_since: datetime
    title: str
    side: str
    cause: str
    abstained: bool
    first_id: int
    last_id: int
    first_at: datetime
    last_at: datetime
    failures: int
    users: int
    gpu_hours_lost: float
    recent: int | None
    expected: float | None
    chance: float | None
    assignee: str | None
    ticket: str | None
    resolved_at: datetime | None
    muted_until: datetime | None
    muted_failures: int | None
    muted_users: int | None
    merged_into: int | None
    labelled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewState:
    """What a group was judged to be; see `GroupRow`. `review_at`: when time alone may change it."""

    id: int
    state: GroupState
    state_since: datetime
    recent: int
    expected: float | None
    chance: float | None
    review_at: datetime


@dataclass(frozen=True, slots=True)
class GroupPrint:
    """One fingerprint of a group; `own_group` is the group it made and goes back to when it is taken out."""

    fingerprint: str
    own_group: int
    failures: int
    gpu_hours_lost: float
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Facet:
    """How many failures of a group are of one cluster, queue, team, user or suspected node."""

    kind: FacetKind
    name: str
    failures: int


@dataclass(frozen=True, slots=True)
class GroupHour:
    """One hour of a group in which something failed; `hour` is its beginning."""

    hour: datetime
    failures: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class Split:
    """A fingerprint's failures where `field` is `value` are a kind of their own."""

    id: int
    fingerprint: str
    field: SplitField
    value: str

    @property
    def refined(self) -> str:
        """The fingerprint of that kind."""
        return f"{self.fingerprint}~{self.id}"


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody said about a group (`kind` comment) or did to it (`kind` action)."""

    id: int
    at: datetime
    who: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Mute:
    """Until when: whichever comes first; a count is that of the group at which the mute ends."""

    until: datetime | None = None
    failures: int | None = None
    users: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """All that is stored of one group. `hours` oldest first, the last four weeks; `notes` newest first."""

    row: GroupRow
    prints: tuple[GroupPrint, ...]
    facets: tuple[Facet, ...]
    hours: tuple[GroupHour, ...]
    notes: tuple[Note, ...]
    splits: tuple[Split, ...]
    muted_for_me: bool


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """What the groups list is narrowed to; None asks nothing. `hidden_from`: leave out what this person muted."""

    state: str | None = None
    side: str | None = None
    cause: str | None = None
    cluster: str | None = None
    queue: str | None = None
    team: str | None = None
    user: str | None = None
    node: str | None = None
    assignee: str | None = None
    novel: bool = False
    hidden_from: str | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What a group's state depends on.

    `recent` failures in the last `window_h` hours, `past` in the `past_h` hours before (what of them lies after its
    first failure). Hours that the group is younger than count nowhere.
    """

    row: GroupRow
    recent: int
    past: int
    past_h: float
