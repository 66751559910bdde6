"""The reference of a database row to an object with logs, and the keys of objects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from hashlib import sha256
from typing import Any

from service.errors import NotFound
from service.log_storage.objects import KEY
from service.log_storage.records import NewLogs
from service.sql.packing import dump

_LONGEST = 80  # characters of a part of a key


@dataclass(frozen=True, slots=True)
class Reference:
    """An object. `size` in bytes and `sha256` are those of its content."""

    key: str
    size: int
    sha256: str

    def to_column(self) -> bytes:
        """The content of the database column: a JSON object, where logs themselves are a JSON array."""
        return dump({"object": self.key, "size": self.size, "sha256": self.sha256})

    @classmethod
    def from_column(cls, value: Mapping[str, Any]) -> "Reference":
        """The reference that `to_column` encoded.

        Raises:
            NotFound: it is no reference to an object of this service.
        """
        key, size, digest = value.get("object"), value.get("size"), value.get("sha256")
        if not isinstance(key, str) or not KEY.fullmatch(key) or type(size) is not int or not isinstance(digest, str):
            raise NotFound("the reference to the log is damaged")
        return cls(key, size, digest)


def key_of(new: NewLogs, content: bytes) -> str:
    """The key of the object with these logs: the same for the same attempt and content.

    A retry overwrites its own object. Other content gets another key, so that an object is never changed while a
    row refers to it.
    """
    day = new.ended_at.astimezone(UTC).date().isoformat()
    attempt = sha256(new.event_id.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{day}/{_part(new.cluster)}/{_part(new.job_id)}/{attempt}-{sha256(content).hexdigest()[:32]}.json.zst"


def _part(name: str) -> str:
    """A name with only characters that need no escape in any storage; the digests keep keys apart."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name[:_LONGEST]) or "_"
