"""Records of groups: plain frozen dataclasses, no SQL."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

GroupState = Literal["new", "ongoing", "escalating", "regressed", "resolved", "muted"]
GroupSort = Literal["-last_at", "-gpu_hours_lost"]
FacetKind = Literal["cluster", "queue", "team", "user", "node", "image"]
SplitField = Literal["cluster", "queue", "team", "user", "node"]
FACETS = 8  # names shown per kind


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One line of the group list. Counts include all failures that ever belonged to the group.

    `recent`, `expected` and `chance` explain an escalation: failures in the last hours, the number expected from the
    group's past, and the probability of as many or more. `muted_failures` and `muted_users` are the counts at which the
    mute ends.
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
    """The computed state of a group; see `GroupRow`. `review_at`: when the state may change without new failures."""

    id: int
    state: GroupState
    state_since: datetime
    recent: int
    expected: float | None
    chance: float | None
    review_at: datetime


@dataclass(frozen=True, slots=True)
class GroupPrint:
    """One fingerprint of a group; `own_group` is the group that it created and returns to when it is removed."""

    fingerprint: str
    own_group: int
    failures: int
    gpu_hours_lost: float
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Facet:
    """The number of failures of a group from one cluster, queue, team, user, suspected node or container image."""

    kind: FacetKind
    name: str
    failures: int


@dataclass(frozen=True, slots=True)
class GroupHour:
    """One hour of a group with failures; `hour` is its start."""

    hour: datetime
    failures: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class Split:
    """Failures of a fingerprint whose `field` is `value` form a separate kind."""

    id: int
    fingerprint: str
    field: SplitField
    value: str

    @property
    def refined(self) -> str:
        """The fingerprint of the separate kind."""
        return f"{self.fingerprint}~{self.id}"


@dataclass(frozen=True, slots=True)
class Note:
    """A comment on a group (`kind` comment) or an action on it (`kind` action)."""

    id: int
    at: datetime
    who: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Mute:
    """The end of a mute, whichever condition is met first; a count is that of the group at which the mute ends."""

    until: datetime | None = None
    failures: int | None = None
    users: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """Everything stored about one group. `hours` oldest first, the last four weeks; `notes` newest first."""

    row: GroupRow
    prints: tuple[GroupPrint, ...]
    facets: tuple[Facet, ...]
    hours: tuple[GroupHour, ...]
    notes: tuple[Note, ...]
    splits: tuple[Split, ...]
    muted_for_me: bool


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """The filters of the group list; None does not filter.

    `hidden_from`: leave out groups that this person muted. `since` and `until`: a failure of the group ended in this
    period, whose begin counts from its full hour if it has an end.
    """

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
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The input for a group's state.

    `recent` failures in the last `window_h` hours, `past` in the `past_h` hours before that (since the group's first
    failure). Hours before the first failure are not counted.
    """

    row: GroupRow
    recent: int
    past: int
    past_h: float
