"""What a round of faults does, and what came of it."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Trouble = Literal["member", "worker", "broker", "database"]


@dataclass(frozen=True)
class Plan:
    """One round. `again`: share of events published twice; `bad`: unreadable records; `settings`: of the worker.

    `alarms`: the alerts whose server is stopped at the end until their condition holds.
    """

    events: int
    troubles: Sequence[Trouble]
    seed: int
    processes: int = 2
    again: float = 0.1
    bad: int = 20
    settings: Mapping[str, str] = field(default_factory=dict)
    alarms: Sequence[str] = ()


@dataclass
class Report:
    """The results. Times in seconds; `returns`: from each kill until work continued.

    `alarms`: from the stop of a server until the condition of its alert held. `looks`: how often rates were compared.
    """

    published: int = 0
    records: int = 0
    stored: int = 0
    lost: int = 0
    twice: int = 0
    wrong: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    in_hand: int = 0
    returns: dict[str, list[float]] = field(default_factory=dict)
    alarms: dict[str, float] = field(default_factory=dict)
    looks: int = 0
    seconds: float = 0.0
    notes: str = ""

    def text(self) -> str:
        """Return the results as text for people."""
        back = ", ".join(
            f"{statistics.median(times):.1f} s (at most {max(times):.1f} s) for a {what}"
            for what, times in sorted(self.returns.items())
        )
        kills = ", ".join(f"{count} x {what}" for what, count in sorted(self.kills.items()))
        alarms = ", ".join(f"{name} after {seconds:.1f} s" for name, seconds in self.alarms.items())
        return (
            f"{self.published} events as {self.records} records in {self.seconds:.0f} s; killed: {kills};"
            f" {self.in_hand} of {self.kills.total()} with work in hand; work continued after"
            f" {back}; stored {self.stored}, lost {self.lost}, stored twice {self.twice}; wrong:"
            f" {', '.join(self.wrong) or 'nothing'}; rates compared {self.looks} times;"
            f" alarms: {alarms or 'none tried'}{'; ' if self.notes else ''}{self.notes}"
        )
