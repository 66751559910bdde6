"""From an event to the row that goes in."""

from datetime import datetime

from service.events import JobCompletion
from service.store.records import NewJob


def content_digest(event: JobCompletion) -> bytes:
    """16 bytes that tell two contents of one key apart (BLAKE2b over the event's JSON)."""
    raise NotImplementedError


def new_job(event: JobCompletion, *, now: datetime, diagnosed: bool, digest: bytes | None = None) -> NewJob:
    """The narrow row of an event; `digest` None is computed here."""
    raise NotImplementedError
