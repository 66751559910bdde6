"""What is to be told to others: written in the transaction that caused it, drained by leases afterwards."""

from collections.abc import Collection, Sequence
from datetime import datetime

from service.store.records import OutboxMessage, StoredMessage


class Outbox:
    """The outbox."""

    def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Store them, in order."""
        raise NotImplementedError

    def lease(self, owner: str, *, limit: int, seconds: float) -> list[StoredMessage]:
        """At most `limit` waiting messages, oldest first, for `owner` alone until `seconds` have passed."""
        raise NotImplementedError

    def done(self, owner: str, ids: Collection[int]) -> int:
        """Mark as told what `owner` still holds; how many that were."""
        raise NotImplementedError

    def release(self, owner: str, message_id: int, *, available_at: datetime) -> bool:
        """Put one back, to be leased again from `available_at`; whether `owner` still held it."""
        raise NotImplementedError
