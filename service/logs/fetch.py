"""Reads the logs of a batch of finished jobs, inline or by URI: bounded, cleaned and redacted."""

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from classifiers.case_builder import stream_name, unknown_kind
from classifiers.contracts import FLIGHT_RECORDER, LogStream
from classifiers.flight_recorder.dump import MOST_BYTES as DUMP_BYTES
from classifiers.flight_recorder.streams import dump_stream, inline_dump
from classifiers.redaction import redact
from service.contracts.event import JobCompletion, LogRef
from service.logs.allowed_roots import LONGEST, AllowedRoots, LogRefused, parse_roots
from service.logs.excerpt import PIECE_BYTES, SCAN_BYTES, TAIL_BYTES, Excerpt, Window
from service.logs.local import JobOwner, LogNotFound, LogUnavailable, is_passing, open_log, path_of
from service.logs.remote import Networks, Remote
from service.logs.text_cleaning import decode, without_beginnings

# Limits for all logs of an event and of a batch; jobs with many ranks get shorter tails.
EVENT_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 256 * 1024 * 1024
TAIL_LEAST_BYTES = 8 * 1024
LOGS_MOST = EVENT_BYTES // TAIL_LEAST_BYTES  # of one event; the others are not read
THREADS = 16
# A file system or server that hangs holds up no other: each root has its own threads. A batch waits for a root that
# already holds threads of earlier batches only this long, and at this many of them its logs are not tried.
HANGING_S = 5.0
STUCK_MOST = 32
_log = logging.getLogger(__name__)
_ERROR_FILE = re.compile(r"/attempt_\d{1,6}/(\d{1,6})/error\.json$")


@dataclass(frozen=True, slots=True)
class FetchedLogs:
    """One event's logs.

    `streams`: redacted, in the event's order; an unreadable one is empty, with the reason in `missing`. `pending`:
    logs that timed out, do not exist yet or whose server fails, to be retried later; they are also in `streams`.
    """

    streams: tuple[LogStream, ...] = ()
    pending: tuple[LogRef, ...] = ()


class LogReader(Protocol):
    """What the diagnosis needs of `LogFetcher`."""

    def fetch_all(self, events: Sequence[JobCompletion], deadline_s: float = 60.0) -> list[FetchedLogs]:
        """One `FetchedLogs` for each event, in order; never raises."""
        ...


@dataclass(slots=True)
class _Read:
    """One log to be read by URI, and the result."""

    ref: LogRef
    owner: JobOwner
    tail_bytes: int
    stream: LogStream | None = None
    pending: bool = False
    waited_s: float = 0.0


class LogFetcher:
    """Reads logs from allowed locations; safe for use by several threads."""

    def __init__(self, roots: Sequence[str], *, any_owner: Sequence[str] = (), networks: Networks = ()) -> None:
        """Read logs from the allowed locations only.

        Args:
            roots: the allow-list (FAULTLINE_LOG_ROOTS), absolute directories or URLs.
            any_owner: directories of the allow-list whose files are read regardless of their owner.
            networks: internal networks that the names of web servers may lead to.

        Raises:
            ConfigurationError: a root is neither a directory nor a URL.
        """
        self._roots: AllowedRoots = parse_roots(roots, any_owner)
        self._remote = Remote(self._roots, networks)
        self._stuck: dict[str, list[threading.Thread]] = {}  # by root
        self._guard = threading.Lock()

    def fetch_all(self, events: Sequence[JobCompletion], deadline_s: float = 60.0) -> list[FetchedLogs]:
        """Return one `FetchedLogs` for each event, in order, after about `deadline_s` seconds at most; never raises."""
        total = sum(min(len(event.logs), LOGS_MOST) for event in events)
        plans: list[list[LogStream | _Read]] = []
        waiting: list[_Read] = []
        for event in events:
            room = min(TAIL_BYTES, EVENT_BYTES // max(len(event.logs), 1), BATCH_BYTES // max(total, 1))
            plan: list[LogStream | _Read] = []
            refs = _chosen(event.logs)
            if len(refs) < len(event.logs):
                cut = f"{len(event.logs) - len(refs):,} further logs: at most {LOGS_MOST:,} of an event are read"
                plan.append(_missing(event.logs[-1], cut))
            for ref in refs:
                if ref.uri is None or ref.tail is not None or ref.missing is not None or unknown_kind(ref.kind):
                    plan.append(_inline(ref, max(room, TAIL_LEAST_BYTES)))
                else:
                    waiting.append(_Read(ref, JobOwner(event.user, event.uid), max(room, TAIL_LEAST_BYTES)))
                    plan.append(waiting[-1])
            plans.append(plan)
        if waiting:
            self._read_all(waiting, deadline_s)
        return [_fetched(plan) for plan in plans]

    def close(self) -> None:
        """Close connections; threads blocked by an unresponsive file system end with the process."""
        self._remote.close()

    def _read_all(self, reads: Sequence[_Read], deadline_s: float) -> None:
        """Read in parallel until all logs are read or the deadline has passed.

        The daemon threads belong to this batch and to one root: one blocked by a network file system does not affect
        other batches or roots.
        """
        began = time.monotonic()
        by_root: dict[str, deque[_Read]] = {}
        for read in reads:
            by_root.setdefault(self._roots.root_of(read.ref.uri or ""), deque()).append(read)
        cancelled = threading.Event()
        started: list[tuple[str, float, list[threading.Thread]]] = []
        for root, waiting in by_root.items():
            stuck = self._still_stuck(root)
            limit_s = min(deadline_s, HANGING_S) if stuck else deadline_s
            for read in waiting:
                read.waited_s = limit_s
            threads = [
                threading.Thread(target=self._work, args=(waiting, cancelled), name=f"log-{index}", daemon=True)
                for index in range(min(THREADS, len(waiting), STUCK_MOST - stuck))
            ]
            for thread in threads:
                thread.start()
            started.append((root, began + limit_s, threads))
        for root, ends, threads in sorted(started, key=lambda one: one[1]):
            for thread in threads:
                thread.join(max(ends - time.monotonic(), 0))
            with self._guard:
                self._stuck.setdefault(root, []).extend(thread for thread in threads if thread.is_alive())
        cancelled.set()

    def _still_stuck(self, root: str) -> int:
        """The number of threads of earlier batches that still wait for a root."""
        with self._guard:
            self._stuck[root] = [thread for thread in self._stuck.get(root, ()) if thread.is_alive()]
            return min(len(self._stuck[root]), STUCK_MOST)

    def _work(self, waiting: deque[_Read], cancelled: threading.Event) -> None:
        while not cancelled.is_set():
            try:
                read = waiting.popleft()
            except IndexError:
                return
            self._read(read, cancelled)

    def _read(self, read: _Read, cancelled: threading.Event) -> None:
        uri = read.ref.uri or ""
        try:
            with self._opened(uri, read.owner) as (file, size):
                if read.ref.kind == FLIGHT_RECORDER:
                    stream = _redacted(dump_stream(_whole(file, cancelled), read.ref.rank, read.ref.node, uri))
                else:
                    stream = _stream(read.ref, _excerpt(file, size, read.tail_bytes, cancelled))
            if not cancelled.is_set():
                read.stream = stream
        except LogRefused as refused:
            read.pending = isinstance(refused, LogNotFound | LogUnavailable)
            read.stream = _missing(read.ref, f"{_shown(uri)}: {refused}")
        except OSError as error:
            read.pending = is_passing(error)
            read.stream = _missing(read.ref, f"{_shown(uri)}: could not be read ({error.strerror or 'error'})")
        except Exception as error:  # noqa: BLE001 - this thread reads the logs of other jobs too, which one log must not take away
            _log.exception("a log could not be read")
            read.stream = _missing(read.ref, f"{_shown(uri)}: could not be read ({type(error).__name__})")

    def _opened(self, uri: str, owner: JobOwner) -> AbstractContextManager[tuple[Any, int | None]]:
        if uri.startswith("/") or uri[:5].lower() == "file:":
            return open_log(path_of(uri), self._roots, owner)
        return self._remote.open_log(uri)


def _chosen(refs: Sequence[LogRef]) -> Sequence[LogRef]:
    """The logs to read: all, or those of launchers first and then of ranks at equal distances."""
    if len(refs) <= LOGS_MOST:
        return refs
    launchers = [number for number, ref in enumerate(refs) if ref.rank is None][:LOGS_MOST]
    others = [number for number, ref in enumerate(refs) if ref.rank is not None]
    room = LOGS_MOST - len(launchers)
    spread = [others[index * len(others) // room] for index in range(min(room, len(others)))]
    return [refs[number] for number in sorted({*launchers, *spread})]


def _inline(ref: LogRef, tail_bytes: int) -> LogStream:
    if (unknown := unknown_kind(ref.kind)) is not None:
        return _missing(ref, redact(unknown))
    if ref.kind == FLIGHT_RECORDER and ref.tail is not None:
        return _redacted(inline_dump(ref.tail, ref.rank, ref.node))
    if ref.tail is None:
        return _missing(ref, redact(ref.absence()))
    data = ref.tail.encode("utf-8", "replace")
    if len(data) <= tail_bytes:
        return _stream(ref, [Window(data, 1)])
    excerpt = Excerpt(tail_bytes)
    for start in range(0, len(data), PIECE_BYTES):
        excerpt.feed(data[start : start + PIECE_BYTES])
    return _stream(ref, excerpt.windows())


def _excerpt(file: Any, size: int | None, tail_bytes: int, cancelled: threading.Event) -> list[Window]:
    """Read at most the last 64 MiB, or the first 64 MiB of a log of unknown length.

    A log that grows during the read is read up to its initial size, one that shrinks up to its end.
    """
    skipped = 0
    if size is not None and size > SCAN_BYTES:
        skipped = size - SCAN_BYTES
        file.seek(skipped)
    excerpt = Excerpt(tail_bytes, whole=not skipped)
    left = SCAN_BYTES if size is None else size - skipped
    while left > 0 and not cancelled.is_set():
        piece = file.read(min(PIECE_BYTES, left))
        if not piece:
            break
        excerpt.feed(piece)
        left -= len(piece)
    return excerpt.windows()


def _whole(file: Any, cancelled: threading.Event) -> bytes:
    """Read a dump; of one that is too large, one byte more than the limit."""
    data = bytearray()
    while len(data) <= DUMP_BYTES and not cancelled.is_set():
        piece = file.read(min(PIECE_BYTES, DUMP_BYTES + 1 - len(data)))
        if not piece:
            break
        data += piece
    return bytes(data)


def _redacted(stream: LogStream) -> LogStream:
    return replace(stream, text=redact(stream.text)) if stream.text else stream


def _stream(ref: LogRef, windows: Sequence[Window]) -> LogStream:
    """Join the windows to one text; each is redacted separately so that its position in the text is known."""
    parts: list[str] = []
    places: list[tuple[int, int | None]] = []
    length = 0
    for window in windows:
        text = without_beginnings(redact(decode(window.data)), window)
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n")
            length += 1
        places.append((length, window.first_line))
        parts.append(text)
        length += len(text)
    return LogStream(
        "".join(parts),
        rank=ref.rank if ref.rank is not None else _rank_of_error_file(ref),
        node=ref.node,
        stream=stream_name(ref.kind, ref.stream),
        first_line=places[0][1] if places else 1,
        windows=tuple(places) if len(places) > 1 else (),
    )


def _rank_of_error_file(ref: LogRef) -> int | None:
    """The local rank in the address of a torchrun error file; without a node, it is the rank of a job on one node."""
    if ref.kind != "torchrun_error" or ref.node is not None:
        return None
    found = _ERROR_FILE.search(ref.uri or "")
    return int(found[1]) if found is not None else None


def _missing(ref: LogRef, reason: str) -> LogStream:
    name = stream_name(ref.kind, ref.stream)
    return LogStream("", rank=ref.rank, node=ref.node, stream=name, first_line=None, missing=reason)


def _fetched(plan: Sequence[LogStream | _Read]) -> FetchedLogs:
    streams: list[LogStream] = []
    pending: list[LogRef] = []
    for item in plan:
        if isinstance(item, LogStream):
            streams.append(item)
            continue
        if item.stream is None:
            streams.append(_missing(item.ref, f"{_shown(item.ref.uri or '')}: not arrived within {item.waited_s:g} s"))
        else:
            streams.append(item.stream)
        if item.stream is None or item.pending:
            pending.append(item.ref)
    return FetchedLogs(tuple(streams), tuple(pending))


def _shown(uri: str) -> str:
    """Return the URI for messages: shortened, without query (which may be a signature) and credentials."""
    scheme, separator, rest = uri[:LONGEST].partition("://")
    if separator:
        host, slash, path = rest.partition("?")[0].partition("/")
        uri = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    return redact(uri[:LONGEST])[:300].replace("\x00", "\ufffd")
