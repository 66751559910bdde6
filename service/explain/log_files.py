"""Finds and opens the logs that a person names: files, folders, standard input; plain or compressed.

Compression is recognised by the first bytes, so a wrong or missing suffix does no harm. UTF-16 with a byte order mark
is converted to UTF-8 while it is read.
"""

import codecs
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from classifiers.contracts import FLIGHT_RECORDER
from classifiers.diagnostic_files.streams import kind_of
from service.errors import ConfigurationError

if TYPE_CHECKING:
    import lzma

STANDARD_INPUT: Final = "-"
FILES_MOST: Final = 2_000  # of a folder
_LOG_NAME: Final = re.compile(
    r"(?i)(?:\.(?:log|err|out|txt|stderr|stdout|trace)(?:\.\d+)?|(?:^|[._-])(?:stderr|stdout|console)[\w.-]*)$"
)
_NO_LOG_NAME: Final = re.compile(r"(?i)^(?:(?:requirements|constraints)[\w.-]*|readme|licen[cs]e|cmakelists)\.txt$")
_MAY_BE_DIAGNOSTIC: Final = re.compile(r"(?i)(?:\.(?:json|pickle|pkl|dump)|^[^.]+)$")
_COMPRESSED: Final = re.compile(r"(?i)\.(?:gz|bz2|xz|lzma|zst|zstd)$")
_SAMPLE: Final = 16 * 1024
_CONTROL: Final = bytes(code for code in range(32) if code not in {7, 8, 9, 10, 11, 12, 13, 27}) + b"\x7f"
_HOLE: Final = re.compile(rb"\0{16,}")
_UTF16_SHARE: Final = 0.2  # nulls at even or odd places
_XZ_MEMORY: Final = 128 * 1024 * 1024  # twice what the strongest preset of xz takes
_BINARY_SHARE: Final = 0.05  # control characters in the sample of a file that is no text (judgement)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log to read. `name`: as shown to the person; `path`: None for standard input; `of_folder`: not named itself."""

    name: str
    path: Path | None
    of_folder: bool = False


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """An open log.

    Attributes:
        file: its text as bytes, in UTF-8 or in an unknown encoding of one byte a character.
        size: its length in bytes if `file` can seek, None otherwise (a pipe, or a compressed or converted file).
        modified: when the file was changed last, None for a pipe.
        kind: the kind of a diagnostic file, None of a plain log.
    """

    file: IO[bytes]
    size: int | None
    modified: datetime | None
    kind: str | None = None


class NotText(ConfigurationError):
    """A file is not text, or nothing of its compressed data can be read."""


def find(names: Sequence[str]) -> list[LogFile]:
    """Return the logs of the names, each once: a file is taken as it is, of a folder all that look like logs.

    Diagnostic files of a folder are taken too.

    Raises:
        ConfigurationError: a name does not exist, or a folder holds no log.
    """
    found: dict[str, LogFile] = {}
    for name in names:
        if name == STANDARD_INPUT:
            found.setdefault(name, LogFile("standard input", None))
            continue
        path = Path(name)
        try:
            path.stat()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
        for log in _logs_of_folder(path) if path.is_dir() else [LogFile(shown(name), path)]:
            found.setdefault(str(log.path), log)
    return list(found.values())


def _logs_of_folder(folder: Path) -> list[LogFile]:
    files: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        files += [Path(place) / one for one in sorted(names) if not one.startswith(".")]
        if len(files) > FILES_MOST:
            raise ConfigurationError(f"{folder}: more than {FILES_MOST:,} files in this folder; name the logs")
    of_logs = {path for path in files if _is_named_like_log(_COMPRESSED.sub("", path.name))}
    logs = [path for path in files if path in of_logs or _is_diagnostic(path)] if of_logs else files
    logs = [path for path in logs if path.is_file()]
    if not any(path.stat().st_size for path in logs):
        raise ConfigurationError(f"{folder}: no log in this folder")
    return [LogFile(shown(str(path)), path, of_folder=True) for path in logs]


def _is_named_like_log(name: str) -> bool:
    return _LOG_NAME.search(name) is not None and _NO_LOG_NAME.search(name) is None


def _is_diagnostic(path: Path) -> bool:
    """Return whether a file that is not named like a log is a diagnostic file."""
    if _MAY_BE_DIAGNOSTIC.search(path.name) is None or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return kind_of(file.read(_SAMPLE)) is not None
    except OSError:
        return False


def shown(name: str) -> str:
    """Return the name of a file as text: bytes that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


@contextmanager
def opened(log: LogFile, standard_input: IO[bytes]) -> Iterator[OpenedLog]:
    """Open a log, decompressed, as bytes of text.

    Raises:
        NotText: it is not text, or nothing of a compressed file can be read.
        ConfigurationError: it can't be read.
    """
    try:
        with _raw(log, standard_input) as raw:
            found = os.fstat(raw.fileno()) if log.path is not None else None
            modified = datetime.fromtimestamp(found.st_mtime, UTC) if found is not None else None
            text = _decompressed(raw)
            try:
                sample = text.peek(_SAMPLE)[:_SAMPLE]
            except damage_errors() as error:
                raise NotText(f"{log.name}: the compressed data is damaged ({error})") from None
            encoding, kind = _utf16_encoding(sample), kind_of(sample)
            if encoding is None and kind != FLIGHT_RECORDER and is_binary(sample):
                raise NotText(f"{log.name}: not a text file")
            if encoding is not None:
                text = io.BufferedReader(_Utf8Reader(text, encoding))
            size = found.st_size if found is not None and text is raw and raw.seekable() else None
            yield OpenedLog(text, size, modified, kind)
    except OSError as error:
        raise ConfigurationError(f"{log.name}: {error.strerror or error}") from None


def damage_errors() -> tuple[type[Exception], ...]:
    """The errors that damaged or incomplete compressed data raises while it is read."""
    errors: list[type[Exception]] = [EOFError, zlib.error]
    for module, name in (("gzip", "BadGzipFile"), ("lzma", "LZMAError"), ("zstandard", "ZstdError")):
        if module in sys.modules:
            errors.append(getattr(sys.modules[module], name))
    return tuple(errors)


@contextmanager
def _raw(log: LogFile, standard_input: IO[bytes]) -> "Iterator[io.BufferedReader[Any]]":
    if log.path is not None:
        with io.BufferedReader(io.FileIO(log.path), _SAMPLE) as file:
            yield file
    elif isinstance(standard_input, io.BufferedReader):
        yield standard_input
    else:
        yield io.BufferedReader(cast("io.RawIOBase", standard_input), _SAMPLE)


def _decompressed(raw: "io.BufferedReader[Any]") -> "io.BufferedReader[Any]":
    """Return the file itself, or a reader of what it holds if it is compressed."""
    start = raw.peek(_SAMPLE)[:6]
    unpacked: Any = None
    # Imported only for a compressed file: most are plain.
    if start.startswith(b"\x1f\x8b"):
        import gzip  # noqa: PLC0415

        unpacked = gzip.GzipFile(fileobj=raw)
    elif start.startswith(b"BZh"):
        import bz2  # noqa: PLC0415

        unpacked = bz2.BZ2File(raw)
    elif start.startswith(b"\xfd7zXZ\x00"):
        unpacked = _XzReader(raw)
    elif start.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard  # noqa: PLC0415

        unpacked = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    if unpacked is None:
        return raw
    return io.BufferedReader(_OnePiece(unpacked) if hasattr(unpacked, "read1") else unpacked, _SAMPLE)


def _utf16_encoding(sample: bytes) -> str | None:
    """Return the encoding that a byte order mark names, None without one."""
    if sample.startswith(codecs.BOM_UTF16_LE) and not sample.startswith(codecs.BOM_UTF32_LE):
        return "utf-16-le"
    return "utf-16-be" if sample.startswith(codecs.BOM_UTF16_BE) else None


def is_binary(sample: bytes) -> bool:
    """Return whether the beginning of a file is not text.

    One run of null bytes is allowed, at the beginning or later: a log that was truncated while a program wrote to it
    has one, and so has one of a file server that lost a piece. UTF-16 without a mark, where every other byte is null,
    is text too.
    """
    text = _HOLE.sub(b"", sample.lstrip(b"\0"), count=1)
    nulls = (text[::2].count(0), text[1::2].count(0))
    if max(nulls) > len(text) * _UTF16_SHARE > 8 * min(nulls):
        text = text.replace(b"\0", b"")
    control = len(text) - len(text.translate(None, _CONTROL))
    return control > _BINARY_SHARE * len(text)


class _OnePiece(io.RawIOBase):
    """Reads one piece at a time: what was unpacked before damaged data is not lost with the error."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end."""
        found = self._file.read1(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _XzReader(io.RawIOBase):
    """Reads xz as `lzma.LZMAFile`, which lets a file of some kilobytes take as much memory as its header asks for."""

    def __init__(self, file: IO[bytes]) -> None:
        import lzma  # noqa: PLC0415 - as above

        self._file = file
        self._lzma = lzma
        self._decoder = self._new_stream()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end."""
        found = b""
        while not found:
            if self._decoder.eof:  # further streams may follow, with null bytes between them
                piece = self._decoder.unused_data.lstrip(b"\0")
                while not piece:
                    more = self._file.read(_SAMPLE)
                    if not more:
                        return 0
                    piece = more.lstrip(b"\0")
                self._decoder = self._new_stream()
            else:
                piece = self._file.read(_SAMPLE) if self._decoder.needs_input else b""
                if not piece and self._decoder.needs_input:
                    raise EOFError("the file ended before the end of the data")
            found = self._decoder.decompress(piece, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _new_stream(self) -> "lzma.LZMADecompressor":
        return self._lzma.LZMADecompressor(self._lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


class _Utf8Reader(io.RawIOBase):
    """Reads text of another encoding as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end."""
        while not self._rest:
            piece = self._file.read(_SAMPLE)
            self._rest = self._decoder.decode(piece, final=not piece).lstrip("\ufeff").encode("utf-8", "replace")
            if not piece:
                break
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)
