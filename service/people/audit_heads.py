"""Heads of the audit log, written outside the database, so that `faultline audit verify` finds a cut or replaced log.

A head is the number of entries and the hash of the last one. It is appended to a file as a line of JSON, and logged,
so that a system log or its collector keeps it too. With a key, each line carries its own HMAC-SHA256 (RFC 2104).
"""

import hmac
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from service.clock import Clock
from service.db.session import Store
from service.errors import ConfigurationError
from service.people.repository.audit_log import AuditLogReader
from service.sql.types import HIGHEST_ID

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditHead:
    """The state of the log at a time: the number of entries, and the hash of the last one in hex."""

    at: str
    entries: int
    hash: str


class AuditHeads:
    """The file of heads. `path` None: heads are only logged."""

    def __init__(self, path: Path | None, key: bytes | None) -> None:
        self._path = path
        self._key = key

    def check(self) -> None:
        """Check that heads can be written; creates the file.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        if self._path is None:
            return
        try:
            os.close(_opened(self._path))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a path"
            raise ConfigurationError(f"FAULTLINE_AUDIT_HEAD_FILE: {self._path} can't be written: {reason}") from None

    def append(self, head: AuditHead) -> None:
        """Add a head.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None:
            return
        line = {"at": head.at, "entries": head.entries, "hash": head.hash}
        if self._key is not None:
            line["mac"] = self._mac(head)
        # One write to the end of the file: several processes may share it.
        descriptor = _opened(self._path)
        try:
            os.write(descriptor, orjson.dumps(line) + b"\n")
        finally:
            os.close(descriptor)

    def problems(self, stored: AuditLogReader) -> tuple[int, list[str]]:
        """Compare the file with the stored log; returns the number of heads and what does not agree."""
        if self._path is None:
            return 0, []
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError as error:
            return 0, [f"the heads in {self._path} cannot be read: {error.strerror}"]
        found = []
        for number, line in enumerate(lines, 1):
            head = self._head(line)
            if head is None:
                found.append(f"{self._path} line {number}: changed, or written with another key")
                continue
            known = stored.hash_at(head.entries)
            if known is None:
                found.append(f"the log had {head.entries} entries at {head.at}: entries were removed at its end")
            elif known.hex() != head.hash:
                found.append(f"entry {head.entries} is not the one that existed at {head.at}: the log was rewritten")
        return len(lines), found

    def _head(self, line: bytes) -> AuditHead | None:
        try:
            read = orjson.loads(line)
            head = AuditHead(str(read["at"]), int(read["entries"]), str(read["hash"]))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, OverflowError):
            return None
        if not 0 < head.entries <= HIGHEST_ID:
            return None
        signed = self._key is None or hmac.compare_digest(str(read.get("mac", "")), self._mac(head))
        return head if signed else None

    def _mac(self, head: AuditHead) -> str:
        text = f"faultline audit head\n{head.at}\n{head.entries}\n{head.hash}".encode()
        return hmac.new(self._key or b"", text, sha256).hexdigest()


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)


class AuditHeadExport:
    """Exports the head of the log if it has changed; called at intervals."""

    def __init__(self, store: Store, heads: AuditHeads, clock: Clock) -> None:
        self._store = store
        self._heads = heads
        self._clock = clock
        self._last = (0, b"")

    def __call__(self) -> None:
        """Export the head.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._store.reading() as reading:
            head = reading.audit_log.head()
        if head == self._last or head[0] == 0:
            return
        entries, digest = head
        log.info("audit log: %d entries, head %s", entries, digest.hex())
        try:
            self._heads.append(AuditHead(self._clock.now().isoformat(), entries, digest.hex()))
        except OSError as error:
            log.warning("FAULTLINE_AUDIT_HEAD_FILE can't be written: %s", error.strerror)
            return
        self._last = head


def summary(problems: Sequence[str], most: int = 10) -> list[str]:
    """The first problems, and how many follow."""
    return [*problems[:most], *([f"and {len(problems) - most} more"] if len(problems) > most else [])]
