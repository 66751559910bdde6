"""What the consumer asks of a source of records, whoever keeps them."""

from collections.abc import Mapping
from typing import Protocol

from service.messaging.record import Record, TopicPartition


class Source(Protocol):
    """Partitions read in order, with positions that move on by reading and offsets that move on by committing.

    A member of a group: partitions may be taken away and given to others while `poll` runs, and only then. What was
    read and not committed is read again by whoever gets the partition next.
    """

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """The next records, in order within each partition; [] after about `timeout_s` without any.

        While paused it returns [] and keeps the membership alive.

        Raises:
            Unavailable: the broker can't be read now; every partition counts as taken away, and a later poll begins
                again at the committed offsets.
            ConfigurationError: it never will (access refused, another member has this member's name).
        """
        ...

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Remember the next offset to read of each partition; those that are no longer ours are left out.

        Raises:
            Unavailable: not remembered; commit these or later ones with the next batch.
            ConfigurationError: it never will be.
        """
        ...

    def take_revoked(self) -> frozenset[TopicPartition]:
        """The partitions taken away since this was asked last, even those given back meanwhile."""
        ...

    def pause(self) -> None:
        """Hand out nothing until `resume`; partitions that are given meanwhile included."""
        ...

    def resume(self) -> None:
        """Hand out records again."""
        ...

    def lag(self) -> Mapping[str, int]:
        """Records by topic that lie between the committed offsets and the end, of this member's partitions.

        Raises:
            Unavailable: the broker does not answer.
        """
        ...

    def close(self) -> None:
        """Leave the group, so that others get the partitions at once. Never raises."""
        ...
