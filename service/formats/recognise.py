"""Bytes or decoded JSON of any format the service understands → one job-completion/1 event."""

from collections.abc import Sequence
from typing import Any

from service.events import JobCompletion
from service.formats.outcome import Skipped

__all__ = ["Skipped", "parse", "parse_object"]


def parse(
    value: bytes | None, headers: Sequence[tuple[str, bytes]] = (), *, cluster: str | None = None
) -> JobCompletion | Skipped:
    """One record as it came from a topic, a request or a file.

    Args:
        value: JSON, at most 16 MiB; None is a topic's deletion marker.
        headers: Kafka's (or HTTP's) headers; they matter for CloudEvents only.
        cluster: the name for records that carry none.

    Raises:
        UnreadableRecord: names the field that is wrong and what was expected there; never another exception.
    """
    raise NotImplementedError


def parse_object(obj: Any, *, cluster: str | None = None) -> JobCompletion | Skipped:
    """The same for decoded JSON."""
    raise NotImplementedError
