"""Heads of a logger before lines that a program did not log: a runner logs each line of its child, at one level.

The head is a time, a name, a level and a place, some of them, in the usual orders (Python's `logging` and
`basicConfig`, loguru, rich, glog and klog, log4j). All lines of a log have the same one, times and numbers aside, and
behind it stands what no program logs at that level: the frames of a traceback, a level or time of its own, the
complaint of a shell. The level says nothing of a line then; nor does it where all of several lines are errors. Logs of
one line are read so too, since the evidence is in the line.

A workflow engine relays lines behind a fixed head among lines of its own. Its log begins and ends with many of those,
and a short program prints few, so that no prefix is common to most lines. The level in such a head is the engine's.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from classifiers.extraction.envelopes import prefixes
from classifiers.patterns.loose_patterns import without_upper_bounds
from classifiers.signatures import LinePattern

_TIME: Final = (
    rf"[\[(]?(?P<time>{prefixes.TIME.pattern}|\d\d/\d\d/\d\d(?:\d\d)? \d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)[\])]?"
)
_LEVELS: Final = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL)"
# A place: `module:function:88 - `, `logger:`.
_PLACE: Final = r" {0,8}[|-] (?:[\w./<>-]{1,60}:(?:[\w<>]{1,60}:)?\d{1,6}(?::| -)?)?| {0,3}:(?:[\w.]{1,60}:)?"
# glog and klog: the level is the letter in front.
_GLOG: Final = r"[EWIFD][01]\d[0-3]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_BEHIND_GLOG: Final = r" {1,9}\d{1,9} [\w./-]{1,90}:\d{1,6}\]"
_HEAD: Final = re.compile(
    rf"(?:{_TIME}(?: {{0,3}}[-|:,])? {{0,3}})?"
    # a name, which is no rank and no pod: they are read where lines are attributed
    rf"(?:\[?(?!{_LEVELS}\b|(?:rank|default|worker|trainer)\W?\d|pod/)[A-Za-z_][\w./-]{{0,60}}\]?"
    r" {0,3}[-|:] {0,3})?"
    rf"[\[<(]?{_LEVELS}[\])>]?(?:{_PLACE}|(?= ))"
    rf"|(?P<glog>{_GLOG}){_BEHIND_GLOG}"
)
_QUICK: Final = re.compile(r"[\[(]?(?:\d|[A-Za-z_][\w./-]{0,60}[\]): |-])")
_NUMBER: Final = re.compile(r"(?<=[: ])\d+")  # of a process, of a line in source code
_BELOW_ERROR: Final = re.compile(r"(?i)debug|info|notice|warn|[WID]\d{4} ")
# What no program logs: frames, a time or level of its own, a rank, launchers, a shell that names its script's line.
_RAW: Final = re.compile(
    r"\s{0,8}File \"[^\"\n]{1,300}\", line \d"
    r"|\[?[EWIF][01]\d[0-3]\d \d\d:|\[?20\d\d[-/]\d\d[-/]\d\d[ T]\d\d:|\[(?:rank|default)\d|\[\d{1,6},\d{1,6}\]<"
    r"|\{\""
    r"|(?:srun|slurmstepd|bash|mpirun|prterun): |[\w./-]{1,80}: (?:line )?\d{1,6}: \S"
)
# What no program logs below the level of errors.
_RAW_BELOW_ERROR: Final = re.compile(
    r"(?:[A-Za-z_][\w.]{0,80})?(?:Error|Exception): |Traceback \(most recent call last\)"
    r"|(?:fatal|[Ee]rror|ERROR|FATAL|CRITICAL|E|panic):|g?make(?:\[\d+\])?: \*{3} |terminate called |Fatal Python error"
    r"|(?:Segmentation fault|Killed|Aborted|Bus error|Terminated)\b"
)
# A head's end with what no program logs behind it, anywhere in a text in ASCII: one pass of a fast engine, which finds
# more than the expressions above find together. Its `\s` has fewer characters than Python's.
_MAY_BE_RAW: Final = LinePattern(
    without_upper_bounds(
        rf"(?:{_LEVELS}[\])>]?(?:{_PLACE})?|{_GLOG}{_BEHIND_GLOG}) *(?:{_RAW.pattern}|{_RAW_BELOW_ERROR.pattern})"
    ).replace(r"\s", r"[\s\x0b\x1c-\x1f]")
)
_SHARE: Final = 0.9  # of the lines (judgement, as for prefixes: others are the runner's own)
_FEWEST_ERRORS: Final = 4  # judgement: fewer lines may all be errors
_PROBES: Final = 3
_BLANKS: Final = re.compile(r" *")
# Airflow: the output of a container, with the container's name, and that of a command.
_RELAY_HEAD: Final = re.compile(
    rf"\[(?P<time>{prefixes.TIME.pattern})\] "
    r"\{(?:pod_manager\.py:\d{1,5}\} INFO - \[[\w.-]{1,63}\] |subprocess\.py:\d{1,5}\} INFO - )"
)
_RELAY_PARTS: Final = ("{pod_manager.py:", "{subprocess.py:")
_FEWEST_RELAYED: Final = 2  # judgement: one line alone may be quoted

Unwrap = Callable[[str], str | None]
"""The line without its envelope; None for a line without one, which is of the runner itself."""


def of_relay(text: str) -> Unwrap | None:
    """What takes the heads of relayed lines off, but their times where the program writes none; None for other logs."""
    if not any(part in text for part in _RELAY_PARTS):
        return None
    rests = [line[head.end() :] for line in text.split("\n") if (head := _RELAY_HEAD.match(line)) is not None]
    if len(rests) < _FEWEST_RELAYED:
        return None
    with_time = not prefixes.have_own_times(rests)

    def unwrap(line: str) -> str | None:
        head = _RELAY_HEAD.match(line)
        if head is None:
            return None
        rest = line[head.end() :]
        return f"{head['time']} {rest}" if with_time and rest else rest

    return unwrap


def of_runner(text: str) -> Unwrap | None:
    """What takes the heads of a runner's logger off the lines of a log, None for a log without them."""
    if not _may_have_heads(text) or _is_of_programs_own(text):
        return None
    lines = [line for line in text.split("\n") if line.strip()]
    heads = [_HEAD.match(line) for line in lines]
    keys = [None if head is None else _key(head) for head in heads]
    counted = Counter(key for key in keys if key is not None)
    if not counted:
        return None
    key, count = counted.most_common(1)[0]
    if count < _SHARE * len(lines):
        return None
    rests = [
        line[head.end() :]
        for line, head, one in zip(lines, heads, keys, strict=True)
        if head is not None and one == key
    ]
    blanks = min((_blanks(rest) for rest in rests if rest.strip()), default=0)
    rests = [rest[blanks:] for rest in rests]
    is_one_level = len(rests) == len(lines) >= _FEWEST_ERRORS and _BELOW_ERROR.search(key) is None
    if not is_one_level and not _is_raw(rests, key):
        return None
    with_time = not prefixes.have_own_times(rests)

    def unwrap(line: str) -> str | None:
        head = _HEAD.match(line)
        if head is None or _key(head) != key:
            return None
        rest = line[head.end() + blanks :]
        time = prefixes.time_in(line, head.end()) if with_time and rest else None
        return rest if time is None else f"{time} {rest}"

    return unwrap


def _may_have_heads(text: str) -> bool:
    """Whether the first lines of a log have heads: a quick answer for most logs."""
    at = 0
    for _ in range(_PROBES):
        end = text.find("\n", at)
        line = text[at : at + prefixes.RANGE if end < 0 else min(end, at + prefixes.RANGE)]
        if line.strip() and (_QUICK.match(line) is None or _HEAD.match(line) is None):
            return False
        if end < 0:
            break
        at = end + 1
    return True


def _is_of_programs_own(text: str) -> bool:
    """Whether the heads are those of a program's own logger: a quick answer for most logs that have heads.

    The first line is below the level of errors, so that not all lines are errors, and nowhere behind a head stands what
    no program logs.
    """
    begin = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", begin)
    head = _HEAD.match(text[begin : end if end >= 0 else len(text)])
    if head is None or _BELOW_ERROR.search(_key(head)) is None or not text.isascii():
        return False
    return not _MAY_BE_RAW.matches(text.encode())


def _key(head: re.Match[str]) -> str:
    """A head without its time and the numbers of processes and lines of source code."""
    time = "time" if head["time"] is not None else "glog"
    start, end = head.span(time)
    text = head[0] if start < 0 else f"{head[0][:start]}{head[0][start] if time == 'glog' else ''}\0{head[0][end:]}"
    return _NUMBER.sub("#", text)


def _blanks(rest: str) -> int:
    hit = _BLANKS.match(rest)
    return 0 if hit is None else hit.end()


def _is_raw(rests: Sequence[str], key: str) -> bool:
    """Whether a program printed what stands behind the heads, and did not log it."""
    if any(_RAW.match(rest) is not None for rest in rests):
        return True
    return _BELOW_ERROR.search(key) is not None and any(_RAW_BELOW_ERROR.match(rest) is not None for rest in rests)
