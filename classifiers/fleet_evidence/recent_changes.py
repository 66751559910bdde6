"""Changes of the platform shortly before a failure: configuration, quotas, mounts, certificates, drivers, images.

A change is no cause by itself. The classifier uses it where the log shows what it causes (`classifiers.relevance`);
every other one is shown with a note, and side, cause and confidence stay those of the log and of the nodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from classifiers.contracts import Evidence, Verdict

CHANGE: Final = "change"
"""Source and kind of a node event that reports a change; also the stream of its line of evidence."""
ALL_NODES: Final = "*"
"""The node of a change that concerns the whole cluster."""
BEFORE_S: Final = 24 * 3_600.0  # how long before the end of a job a change is shown (judgement)
NO_CAUSE: Final = "a change is no cause by itself"
_MOST_SHOWN: Final = 3  # changes (judgement)
_TEXT: Final = 300  # characters of a change (judgement)
_HOUR_S: Final = 3_600
_MINUTE_S: Final = 60


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A change: its node (`ALL_NODES` for the cluster), when it was made or its window began, and its text."""

    node: str
    at: datetime
    text: str


def with_changes(verdict: Verdict, changes: Iterable[RecentChange], ended_at: datetime) -> Verdict:
    """Return the verdict with the latest changes before the end of its job as evidence, in place of earlier ones.

    Those that the verdict rests on stay as they are.
    """
    used = {_words(line.text) for line in verdict.evidence if line.stream != CHANGE and line.role != "context"}
    before = sorted((one for one in changes if one.at <= ended_at and _words(one.text) not in used), key=_latest_first)
    distinct = list({(one.text, one.at): one for one in reversed(before)}.values())[::-1][:_MOST_SHOWN]
    shown = {_words(one.text) for one in before}
    kept = tuple(
        line
        for line in verdict.evidence
        if line.stream != CHANGE and not (line.role == "context" and _words(line.text) in shown)
    )
    if not distinct and len(kept) == len(verdict.evidence):
        return verdict
    return replace(verdict, evidence=(*kept, *(_evidence(one, ended_at) for one in distinct)))


def _latest_first(one: RecentChange) -> tuple[float, str, str]:
    return -one.at.timestamp(), one.node, one.text


def _words(text: str) -> str:
    return " ".join(text.split())[:_TEXT]


def _evidence(one: RecentChange, ended_at: datetime) -> Evidence:
    return Evidence(
        text=_words(one.text),
        role="context",
        node=None if one.node == ALL_NODES else one.node,
        stream=CHANGE,
        note=f"changed {_span((ended_at - one.at).total_seconds())} before the end; {NO_CAUSE}",
    )


def _span(seconds: float) -> str:
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:.0f} h"
    return f"{seconds / _MINUTE_S:.0f} min"
