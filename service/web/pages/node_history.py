"""One timeline of a node: its events, repairs and failures; and the commands that take it out of service."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from service.failures.records import FailureRow
from service.nodes.records import NodeRow, StoredNodeEvent

REASON = "Faultline: jobs fail here more often than elsewhere"


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of the timeline, with the failure or the event that it shows."""

    at: datetime
    kind: Literal["failure", "event", "repair"]
    failure: FailureRow | None = None
    event: StoredNodeEvent | None = None


def moments(node: NodeRow, events: Sequence[StoredNodeEvent], failures: Sequence[FailureRow]) -> tuple[Moment, ...]:
    """The entries, newest first. Failures are only those of the time that the listed events cover."""
    found = [Moment(event.at, "event", event=event) for event in events]
    found += [Moment(row.ended_at, "failure", failure=row) for row in failures]
    if node.repaired_at is not None and all(event.at != node.repaired_at for event in events):  # else it is listed
        found.append(Moment(node.repaired_at, "repair"))
    return tuple(sorted(found, key=lambda moment: moment.at, reverse=True))


def commands(node: str) -> tuple[tuple[str, str, str], ...]:
    """By scheduler: the command that keeps new jobs off a node and lets running ones end, and the one that undoes it.

    Names are quoted for a shell.
    """
    name = shlex.quote(node)
    return (
        (
            "Slurm",
            f"scontrol update NodeName={name} State=DRAIN Reason={shlex.quote(REASON)}",
            f"scontrol update NodeName={name} State=RESUME",
        ),
        ("Kubernetes", f"kubectl cordon {name}", f"kubectl uncordon {name}"),
    )
