"""The protocol of record sources."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from service.messaging.record import Record, TopicPartition


class Committed(NamedTuple):
    """The next offset of a partition, with a note of a few words for whoever reads on from there."""

    offset: int
    note: str = ""


class Source(Protocol):
    """A group member that reads partitions in order; positions advance by polling, offsets by committing.

    Partitions may be revoked while `poll` runs, and only then. Uncommitted records are read again by the next owner of
    the partition.
    """

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """Return the next records, in order within each partition; [] after about `timeout_s` without any.

        While paused it returns [] and keeps the membership alive.

        Raises:
            Unavailable: the broker does not answer; every partition counts as revoked, and a later poll starts again at
                the committed offsets.
            ConfigurationError: the failure is permanent (access refused, another member has this name).
        """
        ...

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Commit the next offset of each partition with its note; revoked partitions are left out.

        Raises:
            Unavailable: not committed; commit these or later offsets with the next batch.
            ConfigurationError: the failure is permanent.
        """
        ...

    def committed(self, partition: TopicPartition) -> Committed | None:
        """Return what the group has committed for a partition, None before the first commit.

        Raises:
            Unavailable: the broker does not answer.
        """
        ...

    def take_revoked(self) -> frozenset[TopicPartition]:
        """Return the partitions revoked since the last call, including those assigned again since."""
        ...

    def pause(self) -> None:
        """Return no records until `resume`, also from newly assigned partitions."""
        ...

    def resume(self) -> None:
        """Return records again."""
        ...

    def lag(self) -> Mapping[str, int]:
        """Return the number of uncommitted records by topic, of this member's partitions; empty without any.

        Raises:
            Unavailable: the broker does not answer.
        """
        ...

    def close(self) -> None:
        """Leave the group, so that other members get the partitions at once. Never raises."""
        ...
