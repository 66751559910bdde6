"""Which jobs a figure counts."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """The cluster, team and queue of the jobs that count; None: all."""

    cluster: str | None = None
    team: str | None = None
    queue: str | None = None

    def given(self) -> Mapping[str, str]:
        """The names that are set, by column."""
        names = {"cluster": self.cluster, "team": self.team, "queue": self.queue}
        return {name: value for name, value in names.items() if value is not None}


ALL_JOBS = Scope()
