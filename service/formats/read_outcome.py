"""What reading a record can come to besides an event."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is readable but not the end of a job (start, pending, requeue, running); `reason` is shown."""

    reason: str
