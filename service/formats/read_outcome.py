"""The result of reading a record that is not an event."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """A readable record that is not the end of a job (start, pending, requeue, running); `reason` is for display."""

    reason: str
