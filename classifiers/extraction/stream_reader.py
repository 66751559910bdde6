"""Reads one log stream: turns the lines that the scanner found into evidence items, each with role, rank and time."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from signal import SIGABRT, SIGTERM
from typing import Final

from classifiers.contracts import LogStream, RawCase
from classifiers.extraction.benign_lines import is_tolerated
from classifiers.extraction.evidence_items import SCHEDULER, EvidenceItem, without_numbers
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_headers import LineHeader, has_rank_labels, rank_in_message, time_of
from classifiers.extraction.line_roles import LineFacts, applicable_hits, classify_line, is_source_code
from classifiers.extraction.line_shapes import is_crash
from classifiers.extraction.onset import IN_SCHEDULER_MESSAGE, Onset
from classifiers.extraction.process_exits import (
    ProcessExit,
    find_exits,
    is_root_cause_report,
    root_cause_exit,
)
from classifiers.extraction.ranks import exited_ranks, find_missing_ranks, resolve_local_ranks
from classifiers.extraction.scan import RANK_MARKS, ScannedLine
from classifiers.extraction.tracebacks import Traceback, exception_type, mark_chains, order_chains, parse_traceback
from classifiers.taxonomy import Role

_EXIT_WORDS: Final = frozenset(
    {
        "failed", "exited", "exitcode", "exit code", "killed", "segmentation", "terminat", "signal", "missing", "stall",
        "unhealthy", "lost", "dead", "abort", "bus error", "failure", "sigkill", "sigsegv", "unavailable", "timed out",
        "preempt", "stopped", "timeout", "error", "sigterm", "sigabrt",
    }
)  # fmt: skip
_RANK_MARKS: Final = ("[rank", "[Rank", "[default", "]<std")
_RANK_TAGS: Final = re.compile(
    r"^[^\n]{0,60}?\[(?:rank ?|Rank ?|default)(?P<a>\d{1,6})\][: ]|^\[\d+,(?P<b>\d{1,6})\]<", re.MULTILINE
)
_MASTER_PODS: Final = frozenset({"-master-0", "-chief-0"})
# Limits of what is read (judgement: they bound the time of a log full of errors).
_MOST_TRACEBACKS: Final = 48
# Of all streams of a case. Each takes about 0.1 ms, so that one event can't keep a worker for more than seconds.
MOST_LINES: Final = 40_000
_MOST_TAGS: Final = 200
_MANY_LINES: Final = 60  # from so many lines on, repeats are counted
_MOST_REPEATS: Final = 8
_PATTERN_LENGTH: Final = 300
_NOTICE_LENGTH: Final = 400
_TIME_RANGE: Final = 2_000
_TIME_LINES: Final = 25
# Lines that only announce the error below them.
_HEADING: Final = re.compile(
    r"(?i)(?:\bgraph execution error|\b\d+ root errors?\(s\) found\.?|\bfollowing (?:errors?|exceptions?|reasons?)"
    r"(?: (?:was|were|occurred|happened|raised|found|reported)){0,2}"
    r"|\b(?:one or more|multiple|several) errors? occurred)"
    r" ?[:.]?\s*$"
)
_HEADING_WORDS: Final = ("rror", "xception", "eason")
_BELOW_HEADING: Final = 800  # characters in which the error is looked for (judgement)


@dataclass(frozen=True, slots=True)
class StreamText:
    """One stream after the scan.

    Attributes:
        index: its place among the texts of the case.
        text: its text, without terminal colours.
        source: the stream that the text is of.
        lines: the lines that the scanner found.
        landmarks: the landmarks that the scanner saw.
    """

    index: int
    text: str
    source: LogStream
    lines: Sequence[ScannedLine]
    landmarks: AbstractSet[str] = frozenset()

    @property
    def is_scheduler(self) -> bool:
        """Whether it is the scheduler's message, not a log."""
        return self.source.stream == SCHEDULER

    def count_lines(self) -> int:
        """The number of lines; the scanner has counted those before the last line that it found."""
        if not self.lines:
            return self.text.count("\n") + 1
        last = self.lines[-1]
        return last.line_number + self.text.count("\n", last.offset)


@dataclass(slots=True)
class StreamFindings:
    """The findings of all streams so far.

    Attributes:
        items: the evidence items, in the order in which they were found.
        exits: the process exits that launchers report.
        missing: ranks that other ranks report as missing, once for each report.
        lines_cut: lines that were left out, because a case may have only `MOST_LINES`.
    """

    items: list[EvidenceItem]
    exits: list[ProcessExit]
    missing: list[int]
    lines_cut: int = 0


class StreamReader:
    """Reads one stream of a case.

    Args:
        raw: the case.
        stream: the stream.
        present: ids of all catalogue entries that match a line of the case.
        logs: the number of streams of the case that have text.
    """

    def __init__(self, raw: RawCase, stream: StreamText, present: frozenset[str], *, logs: int) -> None:
        self._raw = raw
        self._stream = stream
        self._present = present
        rank = stream.source.rank
        is_mixed = not RANK_MARKS.isdisjoint(stream.landmarks) and _has_other_ranks(stream.text, rank)
        is_shared = not stream.is_scheduler and (is_mixed or rank is None or logs <= 1)
        self.attribution = LineAttribution(
            stream.text,
            rank,
            shared=is_shared,
            labelled=has_rank_labels(stream.text),
            may_have_master=not _MASTER_PODS.isdisjoint(stream.landmarks),
        )
        self._chains = self._find_tracebacks()
        self._tracebacks = {one.final_offset: one for one in self._chains}
        candidates = self._candidate_lines()
        self._lines = _ends(candidates, max(2, MOST_LINES // max(logs, 1)))
        self._lines_cut = len(candidates) - len(self._lines)
        is_several = is_mixed or (is_shared and self.attribution.has_several_ranks)
        self._stream_rank = None if is_several else rank
        self._is_only_log = logs <= 1 and not stream.is_scheduler
        self._has_pods = raw.job.scheduler == "kubernetes"
        self._needs_time = logs > 1 or bool(raw.node_events)

    def read(self, findings: StreamFindings) -> None:
        """Add the items, exits and missing ranks of the stream to the findings."""
        findings.lines_cut += self._lines_cut
        counts: Counter[str] = Counter()
        has_many = len(self._lines) > _MANY_LINES
        first = len(findings.items)
        for line in self._lines:
            pattern = ""
            if has_many:
                pattern = without_numbers(line.text[:_PATTERN_LENGTH])
                counts[pattern] += 1
                if counts[pattern] > _MOST_REPEATS:
                    self.attribution.note_repeat(line.text, pattern)
                    continue
            item = self._make_item(line, len(findings.items))
            if item is None:
                continue
            if has_many and item.role in {"initiating", "cascade"}:
                self.attribution.complaint_patterns.add(pattern)
            self._read_exits(line, item, findings)
            findings.items.append(item)
        order_chains(findings.items[first:], self._chains, self._stream.text)
        _demote_headings(findings.items[first:])

    def _find_tracebacks(self) -> list[Traceback]:
        starts = [line for line in self._stream.lines if line.starts_traceback]
        if len(starts) > _MOST_TRACEBACKS:
            starts = [*starts[: _MOST_TRACEBACKS // 2], *starts[-_MOST_TRACEBACKS // 2 :]]
        parse = self.attribution.parse_header
        found = (parse_traceback(self._stream.text, line.offset, line.text, parse=parse) for line in starts)
        return mark_chains(self._stream.text, [one for one in found if one is not None])

    def _candidate_lines(self) -> list[ScannedLine]:
        """The scanned lines and the final lines of tracebacks, in order."""
        by_offset = {line.offset: line for line in self._stream.lines}
        for offset, traceback in self._tracebacks.items():
            if offset not in by_offset:
                number = self._stream.text.count("\n", 0, offset) + 1
                by_offset[offset] = ScannedLine(offset, number, traceback.final_line)
        return [by_offset[offset] for offset in sorted(by_offset)]

    def _make_item(self, line: ScannedLine, position: int) -> EvidenceItem | None:
        """The item of a line, None for a line that is only part of a traceback."""
        traceback = self._tracebacks.get(line.offset)
        embedded: str | None = None
        if line.starts_traceback and not line.hits and traceback is None:
            embedded = _embedded_exception(line.text)
            if embedded is None:
                return None
        header = self.attribution.parse_header(line.text)
        message = line.text[header.message_start :]
        if traceback is None and is_source_code(
            self._stream.text, line.offset, message, stamped=header.message_start > 0
        ):
            return None
        exception = traceback.exception if traceback is not None else embedded or exception_type(line.text)
        hits = applicable_hits(line, self._raw, self._stream.source.stream, self._present)
        role, onset = self._classify(
            LineFacts(line, message.lstrip(), hits, traceback, exception, is_only_log=self._is_only_log)
        )
        if (
            role == "initiating"
            and Onset.DECISIVE_ENTRY < onset <= Onset.ERROR_WORDS
            and traceback is None
            and is_tolerated(self._stream.text, line.offset, line.offset + len(line.text))
        ):
            onset = Onset.RETRIED
        rank, rank_from_stream = self._rank_of(line, header, role)
        is_timed = self._needs_time and role != "context"
        return EvidenceItem(
            text=line.text,
            role=role,
            onset=onset,
            stream=self._stream.index,
            position=position,
            offset=line.offset,
            line_number=line.line_number,
            rank=rank,
            node=self._stream.source.node or header.host,
            gpu=header.gpu,
            time=_time_near(self._stream.text, line.offset, line.text) if is_timed else None,
            hits=hits,
            exception=exception,
            message_start=header.message_start,
            error_words=line.error_words,
            from_scheduler=self._stream.is_scheduler,
            start_offset=traceback.start_offset if traceback is not None else line.offset,
            ends_process=traceback is not None
            or onset is Onset.DECISIVE_ENTRY
            or (onset is Onset.STRONG_ENTRY and is_crash(message.lstrip())),
            rank_from_stream=rank_from_stream,
            raised_at=traceback.raised_at if traceback is not None else "",
        )

    def _classify(self, facts: LineFacts) -> tuple[Role, Onset]:
        role, onset = classify_line(facts)
        if not self._stream.is_scheduler:
            return role, onset
        return (role, IN_SCHEDULER_MESSAGE[onset]) if facts.hits else ("context", Onset.NEUTRAL)

    def _rank_of(self, line: ScannedLine, header: LineHeader, role: Role) -> tuple[int | None, bool]:
        """The rank that printed a line, and whether that is only the rank of the stream."""
        named = header.rank if not header.is_local else None
        in_message = rank_in_message(line.text) if named is None else None
        rank = named if named is not None else in_message
        if rank is None:
            rank = self._stream_rank
        if rank is None and role in {"initiating", "cascade"}:
            rank = self.attribution.infer_rank(line.text, header)
        return rank, rank is not None and header.rank is None and in_message is None

    def _read_exits(self, line: ScannedLine, item: EvidenceItem, findings: StreamFindings) -> None:
        """Add the exits and missing ranks that a line reports."""
        text = self._stream.text
        if is_root_cause_report(line.text):
            root_cause = root_cause_exit(text, line.offset)
            if root_cause is not None:
                findings.exits.append(replace(root_cause, node=self._node_of_agent(root_cause.node)))
            return
        if line.error_words.isdisjoint(_EXIT_WORDS) and all(hit.role != "teardown" for hit in item.hits):
            return
        end = line.offset + len(line.text)
        following = text[end : end + _NOTICE_LENGTH]
        exits = resolve_local_ranks(find_exits(line.text, following), self.attribution)
        findings.exits += [self._with_node(one, item.node) for one in exits]
        item.missing_ranks = tuple(find_missing_ranks(line.text, following))
        findings.missing += item.missing_ranks
        item.reports_exit = any(one.signal != SIGTERM for one in exits)
        item.reports_kill = any(one.is_violent for one in exits)
        item.exited_ranks = exited_ranks(exits)
        if exits and item.role == "initiating" and all(one.signal == SIGABRT for one in exits):
            # A process that aborts itself says why: the launcher's report of it comes afterwards.
            item.role, item.onset = "teardown", Onset.NEUTRAL

    @staticmethod
    def _with_node(one: ProcessExit, node: str | None) -> ProcessExit:
        """An exit with the node of its line, where the launcher of one node reports that a process of it was killed."""
        if node is None or one.node is not None or one.sees_all_ranks or not one.is_violent:
            return one
        return replace(one, node=node)

    def _node_of_agent(self, host: str | None) -> str | None:
        """The node of an agent that reports a process of its own node: on Kubernetes it knows its pod's name only."""
        node = self._stream.source.node
        return node if node is not None and self._has_pods else host


def _has_other_ranks(text: str, rank: int | None) -> bool:
    """Whether lines of other ranks than the stream's own are in it: then a line without a rank is of none."""
    if rank is None or not any(mark in text for mark in _RANK_MARKS):
        return False
    return any(int(tag["a"] or tag["b"]) != rank for tag in islice(_RANK_TAGS.finditer(text), _MOST_TAGS))


def _embedded_exception(line: str) -> str | None:
    """The exception of a traceback that one line holds whole, its line ends escaped (JSON logs), None without one."""
    parts = line.split("\\n")
    named = (exception_type(part) for part in reversed(parts)) if len(parts) > 1 else ()
    return next((name for name in named if name is not None), None)


def _demote_headings(items: Sequence[EvidenceItem]) -> None:
    """Let a heading be no beginning where an error that the catalogue knows follows it.

    Args:
        items: the items of one log, in order; changed in place.
    """
    begins = [item for item in items if item.role == "initiating"]
    for heading, error in pairwise(begins):
        text = heading.text
        if not any(word in text for word in _HEADING_WORDS) or _HEADING.search(text) is None:
            continue
        if error.hits and 0 < error.offset - heading.offset - len(text) <= _BELOW_HEADING:
            error.onset = min(error.onset, heading.onset)
            heading.role, heading.onset = "cascade", Onset.NEUTRAL


def _time_near(text: str, offset: int, line: str) -> float | None:
    """The time of a line, else of the nearest line before it."""
    time = time_of(line)
    if time is not None:
        return time
    begin = max(0, offset - _TIME_RANGE)
    earlier = reversed(text[begin:offset].split("\n")[-_TIME_LINES:])
    return next((time for time in map(time_of, earlier) if time is not None), None)


def _ends(lines: list[ScannedLine], most: int) -> list[ScannedLine]:
    """The first and the last lines, at most this many: a failure begins at one end and is reported at the other."""
    return lines if len(lines) <= most else [*lines[: most // 2], *lines[len(lines) - (most - most // 2) :]]


def lines_with(streams: Sequence[StreamText], entries: frozenset[str]) -> Iterator[tuple[StreamText, ScannedLine]]:
    """The lines that one of some catalogue entries matches, with their logs."""
    for stream in streams:
        for line in stream.lines:
            if any(hit.id in entries for hit in line.hits):
                yield stream, line
