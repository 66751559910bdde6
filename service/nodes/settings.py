"""What an operator can set of the fleet, as plain values; filled in by the composition root."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """How fast the past fades, and when failures are looked at again.

    `half_life`: after so long a failure, and an hour of exposure, counts half. `later`: failures are looked at again
    so long after they came in, for what nodes said meanwhile; `last` so long after their end, for the neighbours.
    `keep_events`: what nodes said longer ago is removed; None keeps it.
    """

    half_life: timedelta = timedelta(days=14)
    later: timedelta = timedelta(minutes=10)
    last: timedelta = timedelta(minutes=40)

    keep_events: timedelta | None = timedelta(days=90)

    @property
    def horizon_days(self) -> int:
        """Days that count at all: what is left after eight half-lives is less than half a percent."""
        return max(1, round(8 * self.half_life / timedelta(days=1)))
