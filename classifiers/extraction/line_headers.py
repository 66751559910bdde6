"""Headers of log lines: time, rank, process, host, device. Launchers and frameworks each have their own form.

Sources: PyTorch (`[rank3]:`, `[default3]:`, glog headers), Open MPI `--tag-output` (`[1,3]<stderr>:`), Slurm
`srun --label` (`3: `), Ray (`(pid=4711, ip=10.0.0.1)`), NCCL (`host:pid:tid [gpu] NCCL WARN`), Lightning (`[rank: 2]`),
syslog, ISO 8601.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Final

from classifiers.contracts import LogStream

_BYTE_ORDER_MARK: Final = "\ufeff"
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Before a line's end, and at its beginning, where they have no effect on a terminal.
_RETURNS: Final = re.compile(r"(?<!\r)\r+\n\r*|\n\r+")
_ISO: Final = re.compile(
    r"(?P<y>20\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>[.,]\d{1,9})?"
)
_GLOG: Final = re.compile(
    r"\b[EWIFD](?P<mo>[01]\d)(?P<d>[0-3]\d)\s+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>\.\d{1,9})?"
)
# vLLM: a level, month and day, then the time.
_LEVEL_DAY: Final = re.compile(
    r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<mo>[01]\d)-(?P<d>[0-3]\d) "
    r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>\.\d{1,9})?"
)
_EPOCH: Final = re.compile(
    r"(?:\"(?:ts|time|timestamp)\": ?|\b00:00:|^[\[(]?(?=\S{1,21} ))(?P<s>1[5-9]\d{8})(?P<f>\.\d{1,9})?\b"
)
_EPOCH_FIRST: Final = ("1", "[1", "(1")  # a line may begin with seconds since 1970
_SYSLOG: Final = re.compile(
    r"\b(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+(?P<d>\d{1,2})\s+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
)
# Between the time that a collector puts in front of a line and the line's own time.
_STAMP_END: Final = re.compile(r"(?:Z|[+-]\d\d:?\d\d)?[\]:]?\s{1,4}(?:std(?:out|err) [FP] )?[\[(]?")
_CLOCK: Final = re.compile(r"\d:\d\d:\d\d")  # is part of every time above but `_EPOCH`, and is found faster
_MONTHS: Final = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_TWO_DIGITS: Final = {f"{number:02d}": number for number in range(100)}
_ISO_LENGTH: Final = len("2026-11-01 08:12:33")
_MOST_DIGITS: Final = 9  # of a part of a second
# By month, the days before it; February has 29 days, as the year is not known.
_DAYS_BEFORE: Final[tuple[int, ...]] = (0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)
_days_before: Final[ContextVar[tuple[int, ...]]] = ContextVar("days_before", default=_DAYS_BEFORE)
_AFTER_END: Final = timedelta(days=31)  # for clocks of other zones, and events after the end of a job
# Limits of what is read of a line (judgement).
_TIME_RANGE: Final = 120
_MOST_TAGS: Final = 4
_INNER_RANGE: Final = 400
_LEVEL_RANGE: Final = 160
_GLOG_RANGE: Final = 120
_FRONT: Final = 4_000
_FRONT_LINES: Final = 40
_MOST_LONG_LINES: Final = 4
_LABELLED_SHARE: Final = 0.6
_COLLECTED_WITHIN_S: Final = 1_500  # judgement; times of different zones differ by half an hour and more

_MPI_TAG: Final = re.compile(
    r"\[(?:\d{1,12},|[\w.-]{1,80}@\d{1,6},)(?:mpirank:)?(?P<rank>\d{1,6})(?:,[\w-]{1,60})?\]"
    r"(?:<(?:stdout|stderr|stddiag)>)?:? ?"
    r"|\[(?P<rank2>\d{1,6})\]<(?:stdout|stderr)>: ?"
)
_STAMPED_TAG: Final = re.compile(r"\[?[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]?(?=\[\d{1,6}[\],])")
_RANK_TAG: Final = re.compile(r"\[(?:rank|Rank|trainer|worker|default)[: ._-]{0,2}(?P<rank>\d{1,6})(?:\|\d+)?\][: ] ?")
_LOCAL_TAG: Final = re.compile(r"\[default(?P<rank>\d{1,4})\]:")
_SRUN_TAG: Final = re.compile(r"\s{0,5}(?P<rank>\d{1,5}): ")
_RAY_TAG: Final = re.compile(r"\((?:[\w.<>]+ )?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.]+))?\) ?")
_POD_TAG: Final = re.compile(
    r"(?:\[?(?:pod/)?[\w.-]*(?:worker|master|ps|launcher)-(?P<rank>\d{1,5})[\w/.-]*\]?)(?: ?\| ?|: | )"
)
_INNER_RANK: Final = re.compile(
    r"\[(?:PG (?:ID )?\d+[^\]]{0,40} )?[Rr]ank:? (?P<a>\d{1,6})[\],]|\brank[ =:]{1,3}(?P<b>\d{1,6})\b(?! of)"
    r"|\[rank(?P<c>\d{1,6})\]|\"rank\": {0,2}(?P<d>\d{1,6})\b"
)
_NCCL_HEAD: Final = re.compile(r"(?P<host>[\w.-]+):(?P<pid>\d+):(?P<tid>\d+) \[(?P<gpu>\d{1,4})\] ")
_LEVEL: Final = re.compile(r"(?i)\b(?:warn(?:ing)?|info|debug|notice)\b|^wandb: (?!ERROR)")
_GLOG_BELOW_ERROR: Final = re.compile(r"(?:^|[\s:\]])\[?[WID][01]\d[0-3]\d \d\d:\d\d:\d\d")
# Times of loggers, of syslog with the journal's "host program[pid]:", of container runtimes with "stdout F", of glog,
# and seconds since 1970.
_TIMES: Final = re.compile(
    r"(?:[\s\[(]*(?:20\d\d[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?[:,]?\s*"
    r"(?:std(?:out|err) [FP] )?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d"
    r"(?: \|| [\w.-]{1,64} [\w./-]{1,64}\[\d{1,8}\]:)?\s*"
    r"|\s*[EWIFD]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+\d+ |\[\d+\.\d+\]\s*"
    r"|[\[(]?\d\d/\d\d/\d\d(?:\d\d)? \d\d:\d\d:\d\d(?:[.,]\d+)?[\])]?:?\s+"
    r"|\(?1[5-9]\d{8}(?:\.\d{1,9})?\)?:?\s|\[1[5-9]\d{8}\]:?\s)+"
)


@dataclass(frozen=True, slots=True)
class LineHeader:
    """What the header of a line names.

    Attributes:
        rank: the rank, None if not named.
        is_local: whether `rank` is a rank within its node.
        pid: the process id, None if not named.
        host: the host, None if not named.
        gpu: the device, None if not named.
        message_start: where the message begins, in characters.
    """

    rank: int | None = None
    is_local: bool = False
    pid: str | None = None
    host: str | None = None
    gpu: int | None = None
    message_start: int = 0


def strip_colors(text: str) -> str:
    """The text without terminal colours; the same object where there are none."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def plain(stream: LogStream) -> LogStream:
    """The stream without terminal colours, carriage returns at the ends of lines and a byte order mark at its start.

    Carriage returns at the beginnings of lines are left out as well.

    The same object where there are none.
    """
    text = stream.text
    has_returns = "\r" in text and ("\r\n" in text or "\n\r" in text or text.startswith("\r"))
    if "\x1b" not in text and not has_returns and not text.startswith(_BYTE_ORDER_MARK):
        return stream
    starts = [offset for offset, _ in stream.windows if offset > 0]
    ends = [*starts, len(text)]
    parts = [_RETURNS.sub("\n", strip_colors(text[start:end])) for start, end in zip([0, *starts], ends, strict=True)]
    parts[0] = parts[0].removeprefix(_BYTE_ORDER_MARK)
    parts = [part.lstrip("\r") for part in parts]
    # A window begins with a line, so that what is removed before it lies in the parts before it.
    moved = dict(zip(starts, accumulate(map(len, parts)), strict=False))
    windows = tuple((moved.get(offset, 0), line) for offset, line in stream.windows)
    return replace(stream, text="".join(parts), windows=windows)


@contextmanager
def in_year_of(end: datetime | None) -> Iterator[None]:
    """Count the seconds of all times in this context within the twelve months up to one month after the end of a job.

    So neither New Year nor the length of February breaks a run: with an end in January, December is before it.

    Args:
        end: the end of the job; None: times are those of one year with a February of 29 days.
    """
    before = _days_before.get()
    set_year(year_of(end))
    try:
        yield
    finally:
        _days_before.set(before)


def year_of(end: datetime | None) -> tuple[int, ...]:
    """What `set_year` needs to count as `in_year_of` does for a job: by month, the days before it."""
    return _DAYS_BEFORE if end is None else _days_before_months(end.year, end.month, end.day)


def set_year(year: tuple[int, ...]) -> None:
    """Count within a year (`year_of`) from now on, for callers that change the job often within such a context."""
    if _days_before.get() is not year:  # jobs that end on one day have the same
        _days_before.set(year)


@lru_cache(maxsize=64)
def _days_before_months(year: int, month: int, day: int) -> tuple[int, ...]:
    """By month, the days from the first of January of a year; the months up to one month after a day of this year."""
    if not MINYEAR < year < MAXYEAR:
        return _DAYS_BEFORE
    first, last = date(year, 1, 1), date(year, month, day) + _AFTER_END
    months = [date(last.year, number, 1) for number in range(1, 13)]
    known = [one if one <= last else one.replace(year=last.year - 1) for one in months]
    return (0, *((one - first).days for one in known))


def seconds_into_year(month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Seconds since the day before the first of January of the year of the job's end; see `in_year_of`."""
    before = _days_before.get()
    days = before[month] if 1 <= month <= len(before) - 1 else 0
    return ((days + day) * 24 + hour) * 3600 + minute * 60 + second


def _seconds(hit: re.Match[str], month: int) -> float:
    day, hour, minute, second = hit.group("d", "h", "mi", "s")
    part = hit["f"] if hit.re is not _SYSLOG else None
    whole = seconds_into_year(month, int(day), int(hour), int(minute), int(second))
    return whole + (float("0." + part[1:]) if part else 0.0)


def _own_time(head: str, first: re.Match[str]) -> float:
    """The time of a line by the stamp at its start, or by its own one behind a stamp of a collector."""
    time_read = _seconds(first, int(first["mo"]))
    between = _STAMP_END.match(head, first.end())
    if between is None:
        return time_read
    begin = between.end()
    own = (_ISO if head[begin : begin + 1] == "2" else _GLOG).match(head, begin)
    if own is None:
        return time_read
    time_written = _seconds(own, int(own["mo"]))
    return time_written if 0.0 <= time_read - time_written <= _COLLECTED_WITHIN_S else time_read


def _time_at_start(line: str) -> float | None:
    """The time of a line as most loggers begin one: a date, a time, a space and a word; None for any other line.

    Such a line has no stamp of a collector before its own. Without an expression, this takes a sixth of the time.
    """
    if not line.startswith("20") or not line.isascii():
        return None
    end = _ISO_LENGTH
    if line[4:5] not in "-/" or line[7:8] not in "-/" or line[13:14] != ":" or line[16:17] != ":":
        return None
    if line[10:11] not in "T _" or line[2:4] not in _TWO_DIGITS:
        return None
    month, day = _TWO_DIGITS.get(line[5:7], -1), _TWO_DIGITS.get(line[8:10], -1)
    hour, minute = _TWO_DIGITS.get(line[11:13], -1), _TWO_DIGITS.get(line[14:16], -1)
    second = _TWO_DIGITS.get(line[17:end], -1)
    if month < 0 or day < 0 or hour < 0 or minute < 0 or second < 0:
        return None
    part = 0.0
    if line[end : end + 1] in {".", ","} and line[end + 1 : end + 2].isdigit():
        begin = end + 1
        end = begin + 1
        while end < begin + _MOST_DIGITS and line[end : end + 1].isdigit():
            end += 1
        part = float("0." + line[begin:end])
    word = line[end + 1 : end + 3]
    if line[end : end + 1] != " " or len(word) != len("IN") or not word.isalpha() or word == "st":  # stdout F
        return None
    return seconds_into_year(month, day, hour, minute, second) + part


def time_of(line: str) -> float | None:
    """Seconds into the year by the first time stamp near the start of a line, None without one; zones are ignored.

    Where a collector put the time in front at which it read the line, the line's own time counts.
    """
    at_start = _time_at_start(line)
    return _time_in_front(line[:_TIME_RANGE]) if at_start is None else at_start


def _time_in_front(head: str) -> float | None:
    """The time by the first time stamp in the front of a line."""
    if _CLOCK.search(head) is None and '"t' not in head and "00:00:1" not in head and not head.startswith(_EPOCH_FIRST):
        return None
    hit = _ISO.search(head)
    if hit is not None:
        return _own_time(head, hit)
    hit = _GLOG.search(head)
    if hit is not None:
        return _seconds(hit, int(hit["mo"]))
    hit = _LEVEL_DAY.search(head)
    if hit is not None:
        return _seconds(hit, int(hit["mo"]))
    if "1" in head:
        hit = _EPOCH.search(head)
        if hit is not None:
            at = time.gmtime(int(hit["s"]))
            whole = seconds_into_year(at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)
            return whole + float("0" + (hit["f"] or ""))
    hit = _SYSLOG.search(head)
    return None if hit is None else _seconds(hit, _MONTHS[hit["mon"]])


def without_time(line: str) -> str:
    """A line without the times that it begins with: what day it was is no word of a failure."""
    may_have = line.startswith(_EPOCH_FIRST) or _CLOCK.search(line, 0, _TIME_RANGE) is not None
    hit = _TIMES.match(line) if may_have else None
    return line if hit is None else line[hit.end() :]


# Most lines name nothing: their headers are made once.
_EMPTY: Final = tuple(LineHeader(message_start=start) for start in range(200))


@lru_cache(maxsize=1024)
def parse_header(line: str, *, labelled: bool = False) -> LineHeader:
    """The header of a line.

    Args:
        line: the line.
        labelled: whether `srun --label` wrote the stream, so that a number and a colon is a rank.
    """
    tags = _read_tags(line, labelled=labelled)
    start = tags.message_start
    colon = line.find(":", start)  # of most lines it is clear without the expression
    nccl = _NCCL_HEAD.match(line, start) if colon > start and line[colon + 1 : colon + 2].isdigit() else None
    if nccl is not None:
        return LineHeader(tags.rank, tags.is_local, nccl["pid"], nccl["host"], int(nccl["gpu"]), nccl.end())
    if tags.rank is None and ("r-" in line or "s-" in line):  # the end of each role
        pod = _POD_TAG.match(line, start)
        if pod is not None:
            return _read_pod_tag(line, pod, tags)
    return tags


def _read_tags(line: str, *, labelled: bool) -> LineHeader:
    """Times, and the tags of ranks and processes among them."""
    rank: int | None = None
    is_local = False
    pid = host = None
    stamped = _STAMPED_TAG.match(line) if line[3:4] == " " else None
    at = stamped.end() if stamped is not None else 0
    for _ in range(_MOST_TAGS):
        skipped = None if line[at : at + 1].islower() else _TIMES.match(line, at)
        if skipped is not None and skipped.end() > at:
            at = skipped.end()
            continue
        process = _RAY_TAG.match(line, at) if line[at : at + 1] == "(" else None
        if process is not None:
            pid, host, at = process["pid"], process["ip"], process.end()
            continue
        tag = _match_rank_tag(line, at, labelled=labelled)
        if tag is None:
            break
        if line[at] == "[":
            is_local = _LOCAL_TAG.match(line, at) is not None
        rank = int(tag["rank"] if tag["rank"] is not None else tag["rank2"])
        at = tag.end()
    if rank is None and pid is None and host is None and at < len(_EMPTY):
        return _EMPTY[at]
    return LineHeader(rank, is_local, pid, host, None, at)


def _match_rank_tag(line: str, at: int, *, labelled: bool) -> re.Match[str] | None:
    char = line[at : at + 1]
    if char == "[":
        return _MPI_TAG.match(line, at) or _RANK_TAG.match(line, at)
    return _SRUN_TAG.match(line) if labelled and at == 0 and char != "(" else None


def _read_pod_tag(line: str, pod: re.Match[str], tags: LineHeader) -> LineHeader:
    """The rank of a pod's name; a rank that the line itself gives behind it comes first."""
    rank, at = int(pod["rank"]), pod.end()
    tag = _RANK_TAG.match(line, at) if line[at : at + 1] == "[" else None
    if tag is not None:
        rank, at = int(tag["rank"]), tag.end()
    return LineHeader(rank, tags.is_local, tags.pid, tags.host, None, at)


def rank_in_message(line: str) -> int | None:
    """The rank that a message names as its own (`[Rank 3]`, `[PG ID 0 ... Rank 3]`, `rank=3`), None if none."""
    hit = _INNER_RANK.search(line, 0, _INNER_RANGE) if "ank" in line else None  # is part of every match
    if hit is None:
        return None
    return int(hit["a"] or hit["b"] or hit["c"] or hit["d"])


def has_rank_labels(text: str) -> bool:
    """Whether most of the first lines begin with a number and a colon, as `srun --label` writes them."""
    begin = first_usual_line(text)
    if not _SRUN_TAG.match(text, begin):
        front = text[begin : begin + 2_000]
        if "\n0: " not in front and "\n1: " not in front:
            return False
    lines = text[begin : begin + _FRONT].split("\n")[:_FRONT_LINES]
    if len(lines) > 1:
        lines.pop()
    full = [line for line in lines if line.strip()]
    return bool(full) and sum(_SRUN_TAG.match(line) is not None for line in full) > _LABELLED_SHARE * len(full)


def first_usual_line(text: str) -> int:
    """Where the first line begins that is not so long that it would be all of what is sampled, as settings may be."""
    begin = 0
    for _ in range(_MOST_LONG_LINES):
        end = text.find("\n", begin)
        if 0 <= end - begin < _FRONT // 2 or end < 0:
            break
        begin = end + 1
    return begin


def is_informational(line: str) -> bool:
    """Whether the log level of a line is information or a warning."""
    return (
        _LEVEL.search(line, 0, _LEVEL_RANGE) is not None or _GLOG_BELOW_ERROR.search(line, 0, _GLOG_RANGE) is not None
    )


def rank_of(line: str) -> int | None:
    """The rank that a line names by its header, which a launcher may have labelled with the rank again."""
    rank = parse_header(line).rank
    return parse_header(line, labelled=True).rank if rank is None else rank
