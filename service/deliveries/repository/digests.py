"""The last message of each digest, so that similar messages are combined."""

from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import blake2b

from sqlalchemy import delete, select

from service.deliveries.tables import digests
from service.sql import bulk
from service.sql.reader import TimedReader
from service.sql.types import utc


class DigestRepository(TimedReader):
    """Reads and writes digests."""

    def last(self, endpoint: str, keys: Collection[str]) -> Mapping[str, datetime]:
        """When a message of each digest was last sent; absent: never."""
        hashes = {_hash(key): key for key in keys}
        rows = self._connection.execute(
            select(digests.c.key_hash, digests.c.at).where(
                digests.c.endpoint == endpoint, digests.c.key_hash.in_(list(hashes))
            )
        )
        return {hashes[bytes(row.key_hash)]: row.at for row in rows}

    def record_sent(self, endpoint: str, key: str) -> None:
        """Store that a message was sent now."""
        self.forget(endpoint, key)
        row = {"endpoint": endpoint, "key_hash": _hash(key)}
        bulk.insert_new(self._connection, digests, {**row, "at": utc(self._clock.now())})

    def last_until_now(self, endpoint: str, keys: Collection[str]) -> Mapping[str, datetime]:
        """As `last`; a time that is still to come, because the clock was set back, is stored again as now."""
        now, last = utc(self._clock.now()), dict(self.last(endpoint, keys))
        for key in [key for key, at in last.items() if at > now]:
            self.record_sent(endpoint, key)
            last[key] = now
        return last

    def remove_before(self, endpoint: str, before: datetime) -> None:
        """Remove the digests of an endpoint that were last sent before a time."""
        self._connection.execute(delete(digests).where(digests.c.endpoint == endpoint, digests.c.at < utc(before)))

    def remove_others_before(self, endpoints: Collection[str], before: datetime) -> None:
        """Remove the digests of all other endpoints that were last sent before a time."""
        self._connection.execute(
            delete(digests).where(digests.c.endpoint.not_in(list(endpoints)), digests.c.at < utc(before))
        )

    def forget(self, endpoint: str, key: str) -> None:
        """Remove the note that a message was sent."""
        same = (digests.c.endpoint == endpoint, digests.c.key_hash == _hash(key))
        self._connection.execute(delete(digests).where(*same))


def _hash(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "replace"), digest_size=16).digest()
