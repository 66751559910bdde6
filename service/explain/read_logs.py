"""Reads the logs to explain: small ones whole, of large ones the beginning, the first error and the end."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO, Final

from classifiers.contracts import FLIGHT_RECORDER
from classifiers.flight_recorder.dump import MOST_BYTES as DUMP_BYTES
from classifiers.flight_recorder.streams import dump_stream
from classifiers.redaction import redact
from service.errors import ConfigurationError
from service.explain.log_files import LogFile, NotText, OpenedLog, damage_errors, opened
from service.logs.excerpt import PIECE_BYTES, SCAN_BYTES, Excerpt, Window
from service.logs.text_cleaning import decode, without_beginnings

# What is classified, in bytes (judgement: a log of a megabyte is read whole, and the answer comes within a second).
_WHOLE: Final = 2 * 1024 * 1024
_ALL_FILES: Final = 8 * 1024 * 1024
_LEAST: Final = 32 * 1024
_HEAD: Final = 64 * 1024
# Compressed logs can't be read from the end: reading stops here, whatever they unpack to.
_UNPACKED_MOST: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadLog:
    """One log as read.

    Attributes:
        name: as shown to the person.
        text: clean and redacted.
        windows: where `text` is made of parts of the file, the offset of each and the number of its first line. Numbers
            below 0 count from the end of the file: -1 is the last line.
        size: length in bytes, unpacked; of a log that was cut the length up to there.
        note: what was left out, None if nothing was.
        modified: when the file was changed last, None for standard input.
        is_text: false for a file of a folder that is no text, such as a program: it is left out.
        kind: the kind of a diagnostic file, None of a plain log.
    """

    name: str
    text: str
    windows: tuple[tuple[int, int], ...]
    size: int
    note: str | None = None
    modified: datetime | None = None
    is_text: bool = True
    kind: str | None = None


def read(logs: Sequence[LogFile], standard_input: IO[bytes] | None = None) -> list[ReadLog]:
    """Read logs, in order.

    Raises:
        ConfigurationError: one can't be read, is not text although it is named or alone, or all are empty.
    """
    source = sys.stdin.buffer if standard_input is None else standard_input
    budget = max(_LEAST, min(_WHOLE, _ALL_FILES // max(1, len(logs))))
    found = [_read_if_text(log, budget, source) for log in logs]
    if logs and not any(one.is_text for one in found):
        raise NotText(f"{logs[0].name}: {found[0].note}")
    if not any(one.text.strip() for one in found):
        names = logs[0].name if len(logs) == 1 else f"{logs[0].name} and {len(logs) - 1} more"
        raise ConfigurationError(f"{names}: the log is empty")
    return found


def _read_if_text(log: LogFile, budget: int, standard_input: IO[bytes]) -> ReadLog:
    try:
        return _read(log, budget, standard_input)
    except NotText as error:
        if not log.of_folder:
            raise
        return ReadLog(log.name, "", (), 0, error.detail.removeprefix(f"{log.name}: "), is_text=False)


def _read(log: LogFile, budget: int, standard_input: IO[bytes]) -> ReadLog:
    with opened(log, standard_input) as source:
        if source.kind == FLIGHT_RECORDER:
            return _read_dump(log, source)
        if source.size is not None and source.size > SCAN_BYTES:
            windows, size, note = _ends(source, source.size, budget)
        else:
            windows, size, note = _excerpt(source, budget)
    text, places = _joined(windows)
    return ReadLog(log.name, text, places, size, note, source.modified, kind=source.kind)


def _read_dump(log: LogFile, source: OpenedLog) -> ReadLog:
    """Read a Flight Recorder dump; `note` says why it can't be read."""
    data = source.file.read(DUMP_BYTES + 1)
    stream = dump_stream(data)
    return ReadLog(log.name, stream.text, (), len(data), stream.missing, source.modified, kind=FLIGHT_RECORDER)


def _excerpt(source: OpenedLog, budget: int) -> tuple[list[Window], int, str | None]:
    """Read a log from its beginning to its end: whole if it is short, else beginning, first error and end."""
    excerpt, head, size, note = Excerpt(budget), bytearray(), 0, None
    try:
        for piece in _pieces(source.file, _UNPACKED_MOST):
            head += piece[: max(0, _HEAD - len(head))]
            size += len(piece)
            excerpt.feed(piece)
        if size >= _UNPACKED_MOST:
            note = f"only its first {_UNPACKED_MOST:,} bytes were read"
    except damage_errors() as error:
        note = f"its compressed data ends early ({error}); read up to there"
    windows = excerpt.windows()
    if size > budget:
        windows = _with_head(bytes(head), windows)
        note = note or "read its beginning, the lines around its first error, and its end"
    return windows, size, note


def _with_head(head: bytes, windows: list[Window]) -> list[Window]:
    """Add the beginning of a log, up to the line where the next window begins."""
    lines = head.split(b"\n")[:-1]
    following = windows[0].first_line if windows else None
    before = [line + b"\n" for line in (lines if following is None else lines[: following - 1])]
    return [Window(b"".join(before), 1), *windows] if before else windows


def _ends(source: OpenedLog, size: int, budget: int) -> tuple[list[Window], int, str | None]:
    """Read beginning and end of a very large file; lines of the end are numbered from the end."""
    half = SCAN_BYTES // 2
    head = source.file.read(_HEAD)
    first = Excerpt(budget // 2)
    first.feed(head)
    for piece in _pieces(source.file, half - _HEAD):
        first.feed(piece)
    source.file.seek(size - half)
    last = Excerpt(budget // 2)
    newlines, ending, in_line = 0, b"\n", True
    for piece in _pieces(source.file, half):
        begin = piece.find(b"\n") + 1 if in_line else 0  # the rest of a line that began before is left out
        in_line = in_line and not begin
        if not in_line:
            last.feed(piece[begin:])
            newlines, ending = newlines + piece.count(b"\n", begin), piece[-1:]
    total = newlines + (ending != b"\n")
    ends = [replace(one, first_line=(one.first_line or 1) - total - 1, cut=True) for one in last.windows()]
    note = f"read its first and last {half // 1024**2} MiB; line numbers below 0 count from its end"
    return [*_with_head(head, first.windows()[:-1]), *ends], size, note


def _pieces(file: IO[bytes], most: int) -> Iterator[bytes]:
    """The bytes of a log; of compressed data that ends early all that can be read."""
    left, read = most, getattr(file, "read1", file.read)
    while left > 0 and (piece := read(min(PIECE_BYTES, left))):
        yield piece
        left -= len(piece)


def _joined(windows: Sequence[Window]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the windows as one text; each is redacted alone, so that its place in the text is known."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    length = 0
    for window in windows:
        text = without_beginnings(redact(decode(window.data).lstrip("\ufeff")), window)
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n")
            length += 1
        places.append((length, window.first_line or 1))
        parts.append(text)
        length += len(text)
    return "".join(parts), tuple(places)
