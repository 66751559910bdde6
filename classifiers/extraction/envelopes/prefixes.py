"""A prefix that something outside of the program puts before each line: a runner, a log collector, a shell's loop.

It is found from the log itself, without a list of formats: the longest text, times aside, that nearly all lines begin
with. Only what stands before the raw output of a program is such a prefix: behind it there are tracebacks, times and
levels of the program's own logger. A logger's own prefix stands before messages alone, and says which of them are
errors. A time alone is a prefix where it cannot be the program's own: other times follow it, or the name of a stream.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from classifiers.extraction.line_headers import time_of

# A time of a line, in the forms of ISO 8601, syslog, glog, seconds since the start or since 1970. Container runtimes
# write the stream behind it, and whether the line is whole.
TIME: Final[re.Pattern[str]] = re.compile(
    r"20\d\d[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?"
    r"(?: std(?:out|err) [FP](?= |$))?"
    r"|[EWIFD][01]\d[0-3]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d"
    r"|\[ {0,8}\d{1,8}\.\d{1,9}s?\]"
    r"|(?<![^\[(])1[5-9]\d{8}(?:\.\d{1,9})?(?=[\]):,]? )"
)
_MARK: Final = "\0"  # stands for a time: no text of a log holds it
RANGE: Final = 160  # characters of a line (judgement)
_SHARE: Final = 0.9  # of the sampled lines begin with it (judgement: others are the runner's own)
_SHARE_OF_LONGEST: Final = 0.98  # of the lines that begin with a shorter one: more would be the program's words
_SHORTEST: Final = 5  # characters
# Where a prefix may end.
_END: Final = re.compile(r"[ \t]|[\]>]:")
# A prefix with one of these says something of the failure; the first one is Valgrind's.
_OF_FAILURE: Final = re.compile(r"(?i)^==\d|(?<!std)err|warn|fatal|crit|fail|abort|kill")
# A prefix of a time and a level alone is that of the program's own logger.
_LEVEL: Final = re.compile(r"(?i)\b(?:info|debug|notice|trace)\b")
_NAME: Final = re.compile(r"[A-Za-z0-9]")
# What shows that the rest of a line is the raw output of a program, which loggers do not write so: an empty or an
# indented line, a traceback, a time, a level, a rank, a launcher's name. A launcher may write a rank before each line.
_RAW: Final = re.compile(
    r"(?:\[\d{1,4}\] ?|\d{1,4}: |\[\d{1,6},\d{1,6}\](?:<\w{6}>)?:? ?)?(?:"
    r"\s*$| {2,8}\S|(?:srun|slurmstepd|bash|mpirun|wandb): |Traceback \(most recent call last\)|\[(?:rank|default)\d"
    r"|\[?[EWIF][01]\d[0-3]\d \d\d:|\[?20\d\d-\d\d-\d\d[ T]|(?:[A-Za-z_][\w.]{0,80})?(?:Error|Exception): "
    r"|(?:ERROR|WARNING|CRITICAL|FATAL|WARN)[:\]])"
)
# A time alone before the lines is a collector's where a container runtime wrote the stream, or where the program's own
# times follow.
_TIME_ALONE: Final = re.compile(rf"[\[(]?{_MARK}[\])]?[:|,]?[ \t]")
_OF_RUNTIME: Final = re.compile(r"\S{19,35} std(?:out|err) [FP](?: |$)")
_OF_GLOG: Final = re.compile(r"[EWIFD](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OWN_TIME_WITHIN: Final = 40  # characters (judgement: a rank, a host or a level stands before it)
# In all envelopes: so many of the lines have a time of their own (judgement: the others are tracebacks).
_SHARE_WITH_OWN_TIME: Final = 0.3


def common_prefix(sample: Sequence[str], text: str) -> str | None:
    """The prefix of most lines of a log, with a mark for each time; None without one.

    Args:
        sample: some of its lines.
        text: the log; it is read only if the sample has a prefix.
    """
    best = longest(sample)
    if best is None or _TIME_ALONE.fullmatch(best) is not None:
        return best
    lengths = ((line, length_of(line, best)) for line in text.split("\n"))
    return best if any(at is not None and _RAW.match(line, at) for line, at in lengths) else None


def longest(lines: Sequence[str], share: float = _SHARE) -> str | None:
    """The longest prefix that a share of some lines has, that names something and says nothing of a failure."""
    heads = list(map(_with_marks, lines))
    median = sorted(heads)[len(heads) // 2]
    best, most = None, 0
    for end in _ends(median):
        prefix = median[:end]
        count = sum(head.startswith(prefix) for head in heads)
        if count < share * len(heads):
            break
        most = most or count
        if count >= _SHARE_OF_LONGEST * most and len(prefix) >= _SHORTEST:
            best = prefix
    if best is None or _NAME.search(_LEVEL.sub("", best)) is None:
        return _time_of_collector(lines, heads, median, share)
    return None if _OF_FAILURE.search(best) else best


def time_of_collector(lines: Sequence[str]) -> str | None:
    """The time that a collector puts before most lines; None where it is the program's own or there is none."""
    heads = list(map(_with_marks, lines))
    return _time_of_collector(lines, heads, sorted(heads)[len(heads) // 2], _SHARE)


def _time_of_collector(lines: Sequence[str], heads: Sequence[str], median: str, share: float) -> str | None:
    """The same, of lines whose beginnings with marks and the median of these are known."""
    first = _TIME_ALONE.match(median)
    if first is None or sum(head.startswith(first[0]) for head in heads) < share * len(heads):
        return None
    with_own = sum(0 <= head.find(_MARK, first.end()) < first.end() + _OWN_TIME_WITHIN for head in heads)
    if with_own > _SHARE_WITH_OWN_TIME * len(heads):
        return first[0]
    of_runtime = sum(_OF_RUNTIME.match(line) is not None for line in lines)
    return first[0] if of_runtime >= share * len(lines) else None


def have_own_times(lines: Sequence[str]) -> bool:
    """Whether the lines of a program, without their envelope, have times that the program wrote."""
    return sum(time_of(line) is not None for line in lines) > _SHARE_WITH_OWN_TIME * len(lines)


def _with_marks(line: str) -> str:
    """The beginning of a line with a mark for each of its first two times."""
    head = line[:RANGE]
    first = _search_time(head, 0)
    if first is None:
        return head
    second = _search_time(head, first.end())
    rest = (
        head[first.end() :] if second is None else f"{head[first.end() : second.start()]}{_MARK}{head[second.end() :]}"
    )
    return f"{head[: first.start()]}{_MARK}{rest}"


def _search_time(head: str, at: int) -> re.Match[str] | None:
    """The first time from a place on. Most lines have one at most: the next is searched only where its signs are."""
    may_have = head.count(":", at) > 1 or head.find("[", at) >= 0 or (at == 0 and head.startswith("1"))
    return TIME.search(head, at) if may_have else None


def length_of(line: str, prefix: str) -> int | None:
    """The length of a line's prefix in characters, None where the line has another one."""
    if _MARK not in prefix:
        return len(prefix) if line.startswith(prefix) else None
    at = 0
    for number, part in enumerate(prefix.split(_MARK)):
        if number:
            hit = TIME.match(line, at)
            if hit is None:
                return None
            at = hit.end()
        if not line.startswith(part, at):
            return None
        at += len(part)
    return at


def time_in(line: str, length: int) -> str | None:
    """The first time in the prefix of a line; that of glog as syslog writes it, as its level is not the program's."""
    hit = TIME.search(line, 0, length)
    if hit is None:
        return None
    glog = _OF_GLOG.match(hit[0])
    if glog is None:
        return hit[0].partition(" std")[0]
    month = int(glog["month"])
    return f"{_MONTHS[month - 1]} {int(glog['day']):2d} {glog['clock']}" if 1 <= month <= len(_MONTHS) else None


def _ends(head: str) -> Iterator[int]:
    """The places where a prefix may end, the first one first; a second time is the program's own."""
    own = head.find(_MARK, head.find(_MARK) + 1)
    for hit in _END.finditer(head if own < 0 else head[:own]):
        yield hit.end()
