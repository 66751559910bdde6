"""Settings of the node statistics, as plain values filled in by the composition root."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """How fast counts decay, and when failures are reassessed.

    `half_life`: after this time a failure, and an hour of exposure, count half. `later`: the delay of the reassessment
    after a failure arrived, for node events; `last`: the delay after its end, for related failures. `keep_events`:
    older node events are removed; None keeps them.
    """

    half_life: timedelta = timedelta(days=14)
    later: timedelta = timedelta(minutes=10)
    last: timedelta = timedelta(minutes=40)

    keep_events: timedelta | None = timedelta(days=90)

    @property
    def horizon_days(self) -> int:
        """The number of days that count: after eight half-lives less than half a percent remains."""
        return max(1, round(8 * self.half_life / timedelta(days=1)))
