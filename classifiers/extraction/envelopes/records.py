"""Logs whose lines are records that hold a line each.

They are JSON objects, as container runtimes, log collectors and structured loggers write them, or `key=value` pairs
with the line in `msg` (logfmt).

Sources: Docker `json-file`, Google Cloud Logging export, Fluent Bit, Filebeat and Vector (JSON lines), structlog and
python-json-logger, logrus and the Go package `slog` (logfmt).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from classifiers.extraction.envelopes import prefixes

# Where a record holds the line, its time, its level and its rank. The first one counts.
_MESSAGE: Final = ("log", "message", "msg", "textPayload", "MESSAGE", "event", "line", "text")
_NESTED: Final = ("jsonPayload", "fields", "body", "record")
_TIME: Final = ("time", "ts", "timestamp", "@timestamp", "asctime", "eventTime")
_LEVEL: Final = ("level", "levelname", "severity", "log_level", "lvl")
_RANK: Final = ("rank", "global_rank", "process_index")
_WRITTEN_RANK: Final = re.compile(r"\d{1,6}")
_LARGEST_RANK: Final = 999_999
_LOGFMT: Final = re.compile(
    r'(?:[\w.@-]{1,40}=(?:"(?:[^"\\]|\\.)*"|[^\s"]*) +){1,12}msg=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S*))'
)
_LOGFMT_PAIR: Final = re.compile(r'([\w.@-]{1,40})=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))')
_ESCAPED: Final = re.compile(r"\\[nrt\"\\]")
_UNESCAPED: Final = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', "\\\\": "\\"}
_LEVEL_NAMES: Final = {
    "error": "ERROR", "err": "ERROR", "critical": "CRITICAL", "fatal": "FATAL", "panic": "FATAL", "alert": "CRITICAL",
    "emergency": "CRITICAL", "warning": "WARNING", "warn": "WARNING", "info": "INFO", "notice": "INFO",
    "debug": "DEBUG", "trace": "DEBUG",
}  # fmt: skip
# A pod, a host or a rank, as log tools write it.
WRITER: Final = re.compile(r"\[?(?:pod/)?[a-z][\w./-]{1,80}\]?(?: ?\| ?|: | )|\d{1,5}: ")
# The time at which a collector read a record.
_STAMP: Final = re.compile(rf"\[?(?P<time>{prefixes.TIME.pattern})\]? {{1,2}}")
_PREFIX_RANGE: Final = 100  # characters
_ISO: Final = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
# Seconds since 1970, of the years 2001 to 2096; larger numbers are milliseconds.
_EARLIEST: Final = 1e9
_LATEST: Final = 4e9
_FEWEST_HOLDING: Final = 2  # of the sampled records hold a line
_SHARE_OF_RECORDS: Final = 0.8  # of the sampled lines (judgement: runtimes print some lines around the records)
# The error that a structured logger keeps beside the message: zap (`error`, `stacktrace`), logrus and slog (`error`,
# `err`), pino (`err` with `type`, `message`, `stack`), Elastic Common Schema (`error` with `type`, `message`,
# `stack_trace`), structlog's `dict_tracebacks` (`exception` as a list with `exc_type`, `exc_value`, `frames`), loguru's
# `serialize` (the traceback in `text`, behind the message).
_STACKS: Final = ("exc_info", "exception", "exc_text", "traceback", "stack_trace", "stacktrace", "stack")
_ERRORS: Final = ("error", "err", "exception")
_TRACEBACK: Final = "Traceback (most recent call last):"
_MOST_FRAMES: Final = 60  # of one exception (judgement: those of the program are among them)
_MOST_EXCEPTIONS: Final = 8  # of one record (judgement)


@dataclass(frozen=True, slots=True)
class Record:
    """The line of a program in a record.

    Attributes:
        text: the line; it has line breaks where the text of an exception follows the message.
        prefix: what stands before the record: the name of who wrote it.
        time: its time as ISO 8601, None if unknown.
        level: its level in capital letters, None if unknown.
        rank: the rank that printed it, None if unknown.
    """

    text: str
    prefix: str
    time: str | None
    level: str | None
    rank: int | None


def may_be_record(line: str) -> bool:
    """Whether a line may be a record, by a quick look."""
    return "msg=" in line or (line.find("{", 0, _PREFIX_RANGE) >= 0 and _start_of(line) is not None)


def _start_of(line: str) -> tuple[int, int] | None:
    """Where the name of who wrote a record and the record begin: at first in the line, or behind a collector's time."""
    if line.startswith("{"):
        return 0, 0
    stamp = _STAMP.match(line)
    at = 0 if stamp is None else stamp.end()
    prefix = None if line.startswith("{", at) else WRITER.match(line, at)
    end = at if prefix is None else prefix.end()
    return (at, end) if line.startswith("{", end) else None


def of_sample(sample: Sequence[str]) -> list[Record]:
    """The records among some lines of a log that hold a line each; none where most of the lines are no records.

    Records of figures hold none; they stay as they are.
    """
    if sum(map(may_be_record, sample)) < _SHARE_OF_RECORDS * len(sample):
        return []
    parts = [_parts_of(line) for line in sample]
    found = [record for prefix, fields in parts if (record := _record_of(fields, prefix)) is not None]
    if len(found) >= _SHARE_OF_RECORDS * len(sample):
        return found
    objects = sum(fields is not None for _, fields in parts)
    return found if len(found) >= _FEWEST_HOLDING and objects >= _SHARE_OF_RECORDS * len(sample) else []


def read(line: str) -> Record | None:
    """The line of a program in a record, None where the line is no record.

    A record may hold another one: a collector's the one that the program wrote.
    """
    prefix, fields = _parts_of(line)
    record = _record_of(fields, prefix)
    stamp = _STAMP.match(line) if record is not None and record.time is None else None
    return record if record is None or stamp is None else replace(record, time=stamp["time"])


def _parts_of(line: str) -> tuple[str, Mapping[str, Any] | None]:
    """The name of who wrote the record of a line, and the record's fields; None where there is no record."""
    start = _start_of(line)
    if start is None:
        return "", _logfmt_fields(line)
    return line[start[0] : start[1]], _json_fields(line[start[1] :])


def _record_of(fields: Mapping[str, Any] | None, prefix: str) -> Record | None:
    message = _first_text(fields, _MESSAGE) if fields is not None else None
    if fields is None or message is None:
        return None
    inner = _record_of(_json_fields(message), "") if message.startswith("{") else None
    text = _with_error(message, fields)
    rank = next((fields[name] for name in _RANK if _is_rank(fields.get(name))), None)
    level = _LEVEL_NAMES.get(_level_of(fields).lower())
    if inner is not None:
        text, level = inner.text, inner.level or level
        rank = rank if inner.rank is None else inner.rank
    return Record(text.rstrip("\r\n"), prefix, _time(fields), level, rank)


def _level_of(fields: Mapping[str, Any]) -> str:
    """The level of a record as it is written, empty if unknown; loguru's is an object with a name."""
    values = (fields.get(name) for name in _LEVEL)
    named = (value.get("name") if isinstance(value, dict) else value for value in values)
    return next((value for value in named if isinstance(value, str)), "")


def _is_rank(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value <= _LARGEST_RANK


def _time(fields: Mapping[str, Any]) -> str | None:
    value = next((fields[name] for name in _TIME if fields.get(name)), None)
    if isinstance(value, str) and _ISO.match(value):
        return value
    try:
        seconds = float(value)  # type: ignore[arg-type] # of None and other types below
    except (TypeError, ValueError):
        return None
    seconds = seconds / 1_000 if seconds > _LATEST else seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat() if _EARLIEST < seconds < _LATEST else None


def _json_fields(line: str) -> Mapping[str, Any] | None:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    for name in _NESTED:
        inner = fields.get(name)
        if isinstance(inner, dict):
            fields = {**fields, **inner}
    return fields


def _logfmt_fields(line: str) -> Mapping[str, Any] | None:
    hit = _LOGFMT.match(line)
    if hit is None:
        return None
    pairs = {name: _unquoted(quoted) if quoted else plain for name, quoted, plain in _LOGFMT_PAIR.findall(line)}
    return {**pairs, "rank": int(pairs["rank"])} if _WRITTEN_RANK.fullmatch(pairs.get("rank", "")) else pairs


def _unquoted(text: str) -> str:
    if "\\u" in text:
        try:
            return str(json.loads(f'"{text}"'))
        except json.JSONDecodeError:
            return text
    return _ESCAPED.sub(lambda hit: _UNESCAPED[hit[0]], text) if "\\" in text else text


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some fields that holds a text."""
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), None)


def _with_error(message: str, fields: Mapping[str, Any]) -> str:
    """The message of a record, with the error that its fields hold: behind a colon, or in lines of its own.

    Args:
        message: the message.
        fields: the fields of the record, nested ones among them.
    """
    stack = _stack_of(message, fields)
    plain = next((value for name in _ERRORS[:2] if isinstance(value := fields.get(name), str)), "")
    if plain.strip() and plain not in message and plain not in stack:
        message = f"{message}: {plain}"
    return f"{message}\n{stack}" if stack and stack not in message else message


def _stack_of(message: str, fields: Mapping[str, Any]) -> str:
    """The lines of the exception of a record, empty without one."""
    for name in _STACKS:
        if isinstance(value := fields.get(name), str) and value:
            return value
    for name in _ERRORS:
        if lines := "\n".join(_lines_of(fields.get(name))):
            return lines
    text = fields.get("text")
    at = text.find(_TRACEBACK) if isinstance(text, str) and message in text else -1
    return text[at:].rstrip() if isinstance(text, str) and at >= 0 else ""


def _lines_of(value: Any) -> Iterator[str]:
    """The lines of an exception that is an object, or of a list of them, the first cause first."""
    if isinstance(value, list):
        for one in reversed(value[:_MOST_EXCEPTIONS]):
            if isinstance(one, dict) and isinstance(one.get("exc_type"), str):
                yield from _listed(one)
    elif isinstance(value, dict):
        kind, words = value.get("type"), value.get("message", value.get("value"))
        stack = next((value[name] for name in _STACKS if isinstance(value.get(name), str) and value[name]), None)
        if stack is not None:
            yield stack
        elif isinstance(kind, str) and isinstance(words, str):
            yield f"{kind}: {words}"


def _listed(exception: Mapping[str, Any]) -> Iterator[str]:
    frames = exception.get("frames")
    yield _TRACEBACK
    for frame in frames[-_MOST_FRAMES:] if isinstance(frames, Sequence) and not isinstance(frames, str) else ():
        if isinstance(frame, dict):
            yield f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("name")}'
    yield f"{exception['exc_type']}: {exception.get('exc_value', '')}".rstrip(": ")
