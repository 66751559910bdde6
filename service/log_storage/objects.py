"""What the log storage needs of a bucket or folder: objects under the day on which their job ended."""

import re
from datetime import date
from typing import Protocol

# The keys that this service writes: day/cluster/job/digests.json.zst.
KEY = re.compile(r"\d{4}-\d{2}-\d{2}/[\w-]{1,80}/[\w-]{1,80}/[0-9a-f]{16}-[0-9a-f]{32}\.json\.zst", re.ASCII)


class Objects(Protocol):
    """A bucket or a folder. Keys have the form `KEY`."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object; one of the same key is replaced. Returns when it is durable.

        Raises:
            Unavailable: it could not be written.
        """
        ...

    def get(self, key: str, size: int) -> bytes:
        """The content of an object.

        Args:
            key: its key.
            size: its size in bytes; more are not read.

        Raises:
            NotFound: there is no such object.
            Unavailable: it could not be read.
        """
        ...

    def days(self) -> list[date]:
        """The days that have objects, in order.

        Raises:
            Unavailable: they could not be listed.
        """
        ...

    def remove_day(self, day: date) -> int:
        """Remove all objects of a day; returns their number.

        Raises:
            Unavailable: not all could be removed.
        """
        ...

    def check(self) -> None:
        """Try to list objects.

        Raises:
            ConfigurationError: the bucket or folder does not exist, or access to it is refused.
            Unavailable: no answer.
        """
        ...


def day_of(name: str) -> date | None:
    """The day that a folder is named for; None for a folder of another kind."""
    try:
        return date.fromisoformat(name) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", name) else None
    except ValueError:
        return None
