"""Takes the envelopes of log lines off, and progress bars before them, so that only what a program printed is left."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Final

from classifiers.contracts import LogStream
from classifiers.extraction.envelopes import (
    elastic_events,
    logger_heads,
    prefixes,
    records,
)
from classifiers.extraction.envelopes.logger_heads import Unwrap
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.line_prefixes import LINE_PREFIX, detect_style, sample_lines
from classifiers.extraction.tracebacks import ignored_lines, may_have_ignored

_FEWEST_LINES: Final = 4  # judgement: fewer may look alike by chance
_SAMPLED: Final = 30  # lines at most
_PROBES: Final = 10
_PROBE_LENGTH: Final = 200
_SHARE_ALIKE: Final = 0.8  # judgement: some lines are those of the runner or the runtime
_MOST_LAYERS: Final = 3  # judgement: what a runtime, a collector and an engine add
_HEAD: Final = re.compile(
    rf"(?:{prefixes.TIME.pattern}) (?:(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG): )?(?:\[rank\d{{1,6}}\]: )?"
    r"|(?:(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG): )?\[rank\d{1,6}\]: "
    r"|(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG): "
)
_RANK: Final = re.compile(r"\[rank\d{1,6}\]: ?")
# A bar of tqdm and what follows it at once: "45%|####5     | 450/1000 [05:10<06:12, 1.47it/s]Traceback ...".
_BAR_SIGN: Final = "%|"
_BAR: Final = re.compile(r"\d%\|[^\n\r|]{0,200}\|[^\n\r\[]{0,60}\[[^\n\r\]]{1,120}\](?=\S)")
_BAR_RANGE: Final = 200  # characters before its number


def unwrapped(stream: LogStream) -> LogStream:
    """The stream without the envelopes of its lines; the same object where they have none.

    A line that a record holds is written as `<time> <LEVEL>: [rank<n>]: <text>`, with the level where the program set
    it. A line behind a prefix keeps the time of the prefix where the program writes none. Events of torchelastic are
    lines of their workers. Lines of exceptions that Python ignored are empty. Numbers of lines stay those of the file.
    """
    for _ in range(_MOST_LAYERS):
        unwrap = _reader_of(stream.text, of_one_rank=stream.rank is not None)
        if unwrap is None:
            break
        stream = _rewritten(stream, unwrap)
    if elastic_events.SIGN in stream.text:
        stream = _rewritten(stream, elastic_events.as_lines)
    if _BAR_SIGN in stream.text and _BAR.search(stream.text) is not None:
        stream = _rewritten(stream, _without_bar)
    if not may_have_ignored(stream.text):
        return stream
    ignored = ignored_lines(stream.text.split("\n"))
    place = count()
    return _rewritten(stream, lambda line: "" if next(place) in ignored else line)


def _rewritten(stream: LogStream, rewrite: Unwrap) -> LogStream:
    parts: list[str] = []
    windows: list[tuple[int, int | None]] = []
    at = 0
    continues = False  # whether the next line's number is one more than that of the last part
    for line, number, begins in _numbered_lines(stream):
        inner = rewrite(line)
        own = (line,) if inner is None else tuple(inner.split("\n"))
        for place, part in enumerate(own):
            if place or begins or not continues:
                windows.append((at, number))
            at += len(part) + 1
        parts += own
        continues = len(own) == 1
    return replace(stream, text="\n".join(parts), windows=tuple(windows), is_unwrapped=True)


def own_text(line: str) -> str:
    """A line of an unwrapped stream without what was kept of its envelope."""
    writer = records.WRITER.match(line)
    head = _HEAD.match(line, writer.end()) if writer is not None else None
    head = head or _HEAD.match(line)
    return line[head.end() :] if head is not None and head.end() < len(line) else line


def _numbered_lines(stream: LogStream) -> Iterator[tuple[str, int | None, bool]]:
    """Each line with its number in the file, and whether a window begins with it."""
    starts = dict(stream.windows) or {0: stream.first_line}
    at, number = 0, stream.first_line
    for line in stream.text.split("\n"):
        begins = at in starts
        number = starts[at] if begins else number
        yield line, number, begins
        at += len(line) + 1
        number = None if number is None else number + 1


def _reader_of(text: str, *, of_one_rank: bool) -> Unwrap | None:
    """What takes the envelope of a line off, None where the lines of a log have none.

    Args:
        text: the log.
        of_one_rank: whether it is known which rank printed it.
    """
    found = logger_heads.of_relay(text)
    if found is None and _may_have_envelopes(text):
        found = _envelope_reader(text, of_one_rank=of_one_rank)
    found = logger_heads.of_runner(text) if found is None else found
    return _reader_behind_ranks(text) if found is None else found


def _reader_behind_ranks(text: str) -> Unwrap | None:
    """What takes the envelopes off that stand behind the rank by which a launcher labels each line; the rank stays."""
    if _RANK.match(text) is None:
        return None
    lines = [line for line in text.split("\n") if line.strip()]
    tags = [_RANK.match(line) for line in lines]
    inner = [line[tag.end() :] for line, tag in zip(lines, tags, strict=True) if tag is not None]
    if len(inner) < _FEWEST_LINES or len(inner) < _SHARE_ALIKE * len(lines):
        return None
    unwrap = _reader_of("\n".join(inner), of_one_rank=True)
    if unwrap is None:
        return None

    def unwrap_behind_rank(line: str) -> str | None:
        tag = _RANK.match(line)
        rest = None if tag is None else unwrap(line[tag.end() :])
        return None if tag is None or rest is None else "\n".join(tag[0] + part for part in rest.split("\n"))

    return unwrap_behind_rank


def _without_bar(line: str) -> str:
    """A line with its last progress bar on a line of its own: text follows a bar without a line break."""
    if _BAR_SIGN not in line:
        return line
    last = line[line.rfind("\r", 0, len(line.rstrip("\r"))) + 1 :]
    bar = _BAR.search(last, 0, last.find(_BAR_SIGN) + 2 * _BAR_RANGE) if last.find(_BAR_SIGN) < _BAR_RANGE else None
    return line if bar is None else f"{last[: bar.end()]}\n{last[bar.end() :]}"


def _envelope_reader(text: str, *, of_one_rank: bool) -> Unwrap | None:
    sample = [line for part in sample_lines(text) for line in part]
    sample = sample[:: len(sample) // _SAMPLED + 1]
    if len(sample) < _FEWEST_LINES:
        return None
    found = records.of_sample(sample)
    if found:
        return _record_reader(found)
    prefix = prefixes.common_prefix(sample, text)
    if prefix is not None and _names_writer(sample, prefix, of_one_rank=of_one_rank):
        prefix = prefixes.time_of_collector(sample)
    return None if prefix is None else _prefix_reader(sample, prefix)


def _may_have_envelopes(text: str) -> bool:
    """Whether a few lines from all over a log begin alike: a quick answer for most logs."""
    ends = (text.find("\n", at) for at in range(0, len(text), len(text) // _PROBES + 1))
    few = [text[end + 1 : end + _PROBE_LENGTH] for end in ends if end >= 0]
    few = [line for line in few if line and line[0] != "\n"]
    first = [line[0] for line in few]
    if not few or max(map(first.count, first)) < _SHARE_ALIKE * len(first):
        return False
    lines = [line.split("\n", 1)[0] for line in few]
    return any(map(records.may_be_record, lines)) or prefixes.longest(lines, share=_SHARE_ALIKE) is not None


def _record_reader(sample: list[records.Record]) -> Unwrap:
    # Where levels differ, the program set them, and not what collects its lines.
    with_level = len({record.level for record in sample}) > 1
    with_time = not prefixes.have_own_times([record.text for record in sample])

    def unwrap(line: str) -> str | None:
        record = records.read(line)
        if record is None:
            return None
        head = record.prefix + (f"{record.time} " if with_time and record.time else "")
        head += f"{record.level}: " if with_level and record.level else ""
        head += f"[rank{record.rank}]: " if record.rank is not None else ""
        first, _, rest = record.text.partition("\n")
        return f"{head}{first}\n{rest}" if rest else head + first

    return unwrap


def _prefix_reader(sample: list[str], prefix: str) -> Unwrap:
    inner = [line[at:] for line in sample if (at := prefixes.length_of(line, prefix)) is not None]
    with_time = not prefixes.have_own_times(inner)

    def unwrap(line: str) -> str | None:
        length = prefixes.length_of(line, prefix)
        if length is None:
            return None
        time = prefixes.time_in(line, length) if with_time else None
        return line[length:] if time is None else f"{time} {line[length:]}"

    return unwrap


def _names_writer(sample: list[str], prefix: str, *, of_one_rank: bool) -> bool:
    """Whether a prefix says which rank, process or pod printed a line: it is read where lines are attributed.

    The pod of a log of one rank is known already.
    """
    if detect_style([sample]).name:
        found = next((LINE_PREFIX.match(line) for line in sample if prefixes.length_of(line, prefix) is not None), None)
        return not (of_one_rank and found is not None and found.lastgroup == "pod")
    heads = (line[:at] for line in sample if (at := prefixes.length_of(line, prefix)) is not None)
    header = parse_header(next(heads, ""))
    return header.rank is not None or header.pid is not None or header.host is not None
