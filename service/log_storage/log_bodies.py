"""Stores and reads the log texts of attempts: in the database, or in objects that the database refers to."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, date
from hashlib import sha256
from typing import Any, Protocol

from classifiers.contracts import LogStream
from service.errors import NotFound, Unavailable
from service.log_storage.objects import KEY, Objects
from service.log_storage.records import LogsToStore, NewLogs, ObjectReference
from service.sql.packing import compress_always, dump, dump_streams, streams_of, unpack
from service.telemetry import Telemetry

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


log = logging.getLogger(__name__)

PARALLEL = 16  # requests at a time: a batch of 500 takes half a second where one takes 15 ms
BATCH_S = 15.0  # time for the logs of a batch; those that are not written then stay in the database
PAUSE_S = 30.0  # after a failed request none is tried for so long, so that neither batches nor pages wait


class LogBodies(Protocol):
    """Where the log texts of attempts are stored."""

    def put(self, new: Sequence[NewLogs]) -> list[LogsToStore]:
        """Store logs as far as they are stored outside the database, before the rows that refer to them.

        Storing the same logs again changes nothing. It never fails: logs that cannot be stored go into the database.

        Returns:
            What the database row of each is to hold, in order.
        """
        ...

    def read(self, column: bytes | None) -> tuple[LogStream, ...]:
        """The logs of a database row.

        Raises:
            NotFound: the object that it refers to does not exist any more, or is not the one that was stored.
            Unavailable: the object storage does not answer.
        """
        ...

    def prefetch(self, reads: Sequence[Callable[[], object]]) -> None:
        """Make several reads of logs that are needed soon, at the same time if each is a request."""
        ...

    def remove_before(self, day: date) -> int:
        """Remove the objects of all days before this one, also those that no row refers to; returns their number.

        Raises:
            Unavailable: the object storage does not answer; objects removed so far stay removed.
        """
        ...

    def check(self) -> None:
        """Check at the start of a process that the storage can be used.

        Raises:
            ConfigurationError: it does not exist, or access is refused; the message names the setting.
        """
        ...


class DatabaseLogs:
    """Logs in the column of their row."""

    def put(self, new: Sequence[NewLogs]) -> list[LogsToStore]:
        """See `LogBodies.put`."""
        return [one.streams for one in new]

    def read(self, column: bytes | None) -> tuple[LogStream, ...]:
        """See `LogBodies.read`."""
        found = None if column is None else unpack(column)
        if isinstance(found, dict):
            raise Unavailable("the log is in object storage, but FAULTLINE_LOG_STORE_URL is not set")
        return streams_of(found or ())

    def prefetch(self, reads: Sequence[Callable[[], object]]) -> None:
        """See `LogBodies.prefetch`: the logs are in memory already."""

    def remove_before(self, day: date) -> int:  # noqa: ARG002 -- retention removes the rows
        """See `LogBodies.remove_before`."""
        return 0

    def check(self) -> None:
        """See `LogBodies.check`."""


class ObjectLogs:
    """Logs in objects; rows hold references. Logs that are in the database already are read from there.

    Args:
        objects: the bucket or folder.
        telemetry: counts requests by their outcome.
    """

    def __init__(self, objects: Objects, telemetry: Telemetry) -> None:
        self._objects = objects
        self._counts = telemetry.log_storage
        for outcome in ("stored", "kept_in_database"):  # an increase is seen only of a series that was there before
            self._counts.labels("write", outcome)
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="log-storage")
        self._paused_until = 0.0

    def put(self, new: Sequence[NewLogs]) -> list[LogsToStore]:
        """See `LogBodies.put`."""
        tasks = [self._pool.submit(self._put, one) if one.streams else None for one in new]
        wait([task for task in tasks if task is not None], timeout=BATCH_S)
        stored: list[LogsToStore] = []
        for one, task in zip(new, tasks, strict=True):
            reference = None
            if task is not None:
                reference = task.result() if task.done() else None
                task.cancel()
                self._counts.labels("write", "stored" if reference else "kept_in_database").inc()
            stored.append(ObjectReference(reference.to_column()) if reference else one.streams)
        if any(task is not None and not task.done() for task in tasks):
            self._pause(f"logs were not written within {BATCH_S:.0f} s")
        return stored

    def read(self, column: bytes | None) -> tuple[LogStream, ...]:
        """See `LogBodies.read`."""
        found = None if column is None else unpack(column)
        if not isinstance(found, dict):
            return streams_of(found or ())
        reference = Reference.from_column(found)
        try:
            data = self._get(reference)
        except NotFound:
            self._counts.labels("read", "missing").inc()
            raise
        except Unavailable:
            self._counts.labels("read", "failed").inc()
            raise
        self._counts.labels("read", "found").inc()
        return streams_of(unpack(data))

    def prefetch(self, reads: Sequence[Callable[[], object]]) -> None:
        """See `LogBodies.prefetch`."""
        wait([self._pool.submit(read) for read in reads])

    def remove_before(self, day: date) -> int:
        """See `LogBodies.remove_before`."""
        count = sum(self._objects.remove_day(one) for one in self._objects.days() if one < day)
        if count:
            self._counts.labels("remove", "removed").inc(count)
        return count

    def check(self) -> None:
        """See `LogBodies.check`. A storage that does not answer at the moment is only reported."""
        try:
            self._objects.check()
        except Unavailable as error:
            self._pause(error.detail)

    def _put(self, new: NewLogs) -> Reference | None:
        """Write one object; None if it could not be written."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            packed = compress_always(dump_streams(new.streams))
            reference = Reference(key_of(new, packed), len(packed), sha256(packed).hexdigest())
            self._objects.put(reference.key, packed)
        except Unavailable as error:
            self._pause(error.detail)
            return None
        except Exception:
            log.exception("log storage: a log could not be written")
            return None
        return reference

    def _get(self, reference: Reference) -> bytes:
        if time.monotonic() < self._paused_until:
            raise Unavailable("the log storage does not answer")
        try:
            data = self._objects.get(reference.key, reference.size)
        except Unavailable as error:
            self._pause(error.detail)
            raise Unavailable("the log storage does not answer") from None
        if sha256(data).hexdigest() != reference.sha256:
            raise NotFound("the log in the log storage is not the one that was stored")
        return data

    def _pause(self, reason: str) -> None:
        if time.monotonic() >= self._paused_until:
            log.warning("log storage: %s; not used for %.0f s", reason, PAUSE_S)
        self._paused_until = time.monotonic() + PAUSE_S
