"""Who printed a line of a log that several processes write to.

A line is attributed by its prefix (`line_prefixes`), by other lines of the log that connect a process id or a local
rank with a rank, and, where nothing names the writer, by the rank whose own lines end there.

Sources: torchelastic's report and `--tee`, Ray Train, Google's logging, Open MPI, UCX.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from classifiers.extraction.line_headers import LineHeader, parse_header, rank_in_message
from classifiers.extraction.line_prefixes import (
    LINE_PREFIX,
    MOST_RANKS,
    PrefixStyle,
    detect_style,
    logger_rank,
    sample_lines,
)
from classifiers.extraction.progress_lines import ProgressLines

_WORLD_SIZE: Final = re.compile(
    r"\b(?:[Ww]orld[_ ]?[Ss]ize|WORLD_SIZE|num_processes|nranks|nproc)[\"']?[ =:]{1,3}(\d{1,5})\b"
    r"|\b[Rr]ank[ :]\d{1,5}(?: of |/)(\d{1,5})\b|\bprocess \d{1,5} of (\d{1,5})\b"
)
_EXIT_REPORT: Final = re.compile(
    r"rank +: (?P<rank>\d{1,6}) \(local_rank: \d+\)\n[^\n]{0,40}exitcode +: -?\d+ \(pid: (?P<pid>\d+)\)"
)
_RAY_SETUP: Final = re.compile(r"pid=(?P<pid>\d{2,8})\b[^\n]{0,120}?\b(?:world_)?rank=(?P<rank>\d{1,5})\b")
_RAY_TAG: Final = re.compile(r"pid=(?P<pid>\d{2,8})[^)\n]{0,40}\) {0,2}\[[Rr]ank ?(?P<rank>\d{1,5})\]")
_LOCAL_RANK: Final = re.compile(
    r"\[default(?P<l1>\d{1,4})\]:[^\n]{0,60}?\[rank ?(?P<r1>\d{1,6})\]"
    r"|\brank +: (?P<r2>\d{1,6}) \(local_rank: (?P<l2>\d{1,4})\)"
)
_LOCAL_TAG: Final = re.compile(r"^[^\n\[]{0,60}\[default(\d{1,4})\]:", re.MULTILINE)
# NCCL names the device of a process in the head of its lines, and its rank once, when a group of ranks is set up.
_NCCL_RANK: Final = re.compile(
    r"(?P<host>[\w.-]{1,120}):\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL INFO [^\n]{0,120}?"
    r"\brank (?P<rank>\d{1,6}) n[Rr]anks (?P<size>\d{1,6}) cudaDev (?P<device>\d{1,3})\b"
)
# Limits of what is read, in characters unless named otherwise (judgement: they bound the time of a long log).
_WORLD_RANGE: Final = 30_000
_NEAR: Final = 48_000
_END_LENGTH: Final = 200_000
_MENTIONS: Final = 12  # of a process id
_LINE_RANGE: Final = 300
_LINE_LENGTH: Final = 400
_CUT_LENGTH: Final = 200
_MOST_LOCAL_RANKS: Final = 64
_RECENT_LINES: Final = 6  # of each rank


class LineAttribution:
    """The writers of the lines of one log. What needs a search of the log is looked up when it is first needed.

    Args:
        text: the log.
        rank: the rank of its stream, None without one.
        shared: whether several processes may have written to it.
        labelled: whether `srun --label` wrote it.
        may_have_master: whether the name of a master's pod may be in it.
    """

    def __init__(
        self, text: str, rank: int | None, *, shared: bool, labelled: bool, may_have_master: bool = True
    ) -> None:
        self._text = text
        self._rank = rank
        self._shared = shared
        self._labelled = labelled
        self._may_have_master = may_have_master
        self._style: PrefixStyle | None = None
        self._samples: list[list[str]] | None = None
        self._progress_lines: ProgressLines | None = None
        self._ranks_by_pid: dict[str, int | None] | None = None
        self._ends: str | None = None
        self._ranks_by_local_rank: dict[int, int] | None = None
        self._first_ranks: dict[str, int] | None = None
        self.complaint_patterns: set[str] = set()
        self.complaining_ranks: set[int] = set()

    @property
    def prefix_style(self) -> PrefixStyle:
        """How the lines are prefixed."""
        if self._style is None:
            has_master = self._may_have_master and ("-master-0" in self._text or "-chief-0" in self._text)
            self._style = (
                detect_style(self.samples, self._text, has_master=has_master) if self._shared else PrefixStyle()
            )
        return self._style

    @property
    def samples(self) -> list[list[str]]:
        """Lines from several places of the log."""
        if self._samples is None:
            self._samples = sample_lines(self._text)
        return self._samples

    @property
    def progress_lines(self) -> ProgressLines:
        """The lines by which the ranks report progress."""
        if self._progress_lines is None:
            self._progress_lines = ProgressLines(self._text, lambda: (self.samples, len(self.prefix_style.ranks)))
        return self._progress_lines

    @property
    def known_ranks(self) -> frozenset[int]:
        """The ranks known to take part, by the prefixes read so far and the world size that the log states."""
        ranks = self._style.ranks if self._style is not None else frozenset()
        size = self._stated_size()
        return ranks | frozenset(range(size)) if size <= MOST_RANKS else ranks

    def _stated_size(self) -> int:
        """The number of ranks that the log states, 0 without one."""
        found = _WORLD_SIZE.search(self._text, 0, _WORLD_RANGE)
        return int(next(group for group in found.groups() if group)) if found is not None else 0

    @property
    def has_several_ranks(self) -> bool:
        """Whether the log has lines of more than one rank."""
        return self._shared and len(self.prefix_style.ranks) > 1

    def note_repeat(self, line: str, pattern: str) -> None:
        """Note that the rank of a line complains, where lines of this pattern were complaints before."""
        if pattern in self.complaint_patterns:
            rank = self.parse_header(line).rank
            rank = rank_in_message(line) if rank is None else rank
            if rank is not None:
                self.complaining_ranks.add(rank)

    def parse_header(self, line: str) -> LineHeader:
        """The header of a line, with the prefix of this log and the rank that the log gives a process id."""
        header = parse_header(line, labelled=self._labelled)
        if not self._shared:
            return header
        if header.rank is None or line[:1] not in "[(" or line.startswith("[pod"):
            header = self._parse_prefix(line, header)
        if header.is_local and header.rank is not None:
            known = self.ranks_by_local_rank().get(header.rank)
            header = replace(header, rank=known, is_local=False) if known is not None else header
        if header.rank is None and header.pid is not None:
            rank = self._rank_of_device(header)
            rank = self.rank_of_process(header.pid) if rank is None else rank
            if rank is not None:
                return replace(header, rank=rank)
        return header

    def _parse_prefix(self, line: str, header: LineHeader) -> LineHeader:
        style = self.prefix_style
        found = LINE_PREFIX.match(line) if style.name else None
        if found is None or not style.accepts(found.lastgroup):
            return header
        rest = parse_header(line[found.end() :])
        rank, host = style.read(found[found.lastgroup or style.name])
        if rest.rank is not None and not rest.is_local:
            rank = rest.rank
        return LineHeader(
            rank=rank,
            is_local=rest.is_local and rank is None,
            pid=rest.pid or header.pid,
            host=(rest.host or host) if style.name == "host" else (host or rest.host),
            gpu=rest.gpu,
            message_start=found.end() + rest.message_start,
        )

    def logger_rank(self, line: str) -> int | None:
        """The rank that a program's logger puts in a line, where the loggers of this log do so."""
        return logger_rank(line) if self._shared and self.prefix_style.has_logger_ranks else None

    def infer_rank(self, line: str, header: LineHeader) -> int | None:
        """The rank that printed a line whose header names none, as far as the log connects it with one."""
        if not self._shared:
            return None
        rank = self.logger_rank(line)
        if rank is not None:
            return rank
        return self.rank_of_process(header.pid) if header.pid is not None else None

    def _both_ends(self) -> str:
        """The text; of a very long one its beginning and end, where process ids and ranks are connected."""
        if self._ends is None:
            is_long = len(self._text) > 2 * _END_LENGTH
            self._ends = f"{self._text[:_END_LENGTH]}\n{self._text[-_END_LENGTH:]}" if is_long else self._text
        return self._ends

    def ranks_by_local_rank(self) -> dict[int, int]:
        """Ranks by local rank, where the log shows those of exactly one node, or one node has all ranks."""
        if self._ranks_by_local_rank is None:
            text = self._both_ends()
            has_both = "[default" in text or "(local_rank: " in text  # far cheaper than the search
            offsets = {
                int(found["r1"] or found["r2"]) - int(found["l1"] or found["l2"])
                for found in (_LOCAL_RANK.finditer(text) if has_both else ())
            }
            if not offsets and "[default" in text and len(set(_LOCAL_TAG.findall(text))) == self._stated_size():
                offsets = {0}
            base = offsets.pop() if len(offsets) == 1 else None
            self._ranks_by_local_rank = (
                {} if base is None else {local: local + base for local in range(_MOST_LOCAL_RANKS)}
            )
        return self._ranks_by_local_rank

    def _rank_of_device(self, header: LineHeader) -> int | None:
        """The rank of the device that NCCL names in the head of a line; None for device 0, which may be any process's.

        Where each process sees one device alone, all are called 0.
        """
        if not header.gpu or header.host is None:
            return None
        if self._first_ranks is None:
            self._first_ranks = self._ranks_of_first_devices()
        first = self._first_ranks.get(header.host)
        return None if first is None else first + header.gpu

    def _ranks_of_first_devices(self) -> dict[str, int]:
        """By host, the rank with device 0, where the ranks of a host follow its devices."""
        text = self._both_ends()
        found = list(_NCCL_RANK.finditer(text)) if " cudaDev " in text else []
        largest = max((int(one["size"]) for one in found), default=0)  # smaller groups number their members from 0
        offsets: dict[str, set[int]] = {}
        for one in found:
            if int(one["size"]) == largest:
                offsets.setdefault(one["host"], set()).add(int(one["rank"]) - int(one["device"]))
        return {host: min(seen) for host, seen in offsets.items() if len(seen) == 1 and min(seen) >= 0}

    def rank_of_process(self, pid: str) -> int | None:
        """The rank of a process, where a line of the log connects the two."""
        if self._ranks_by_pid is None:
            self._ranks_by_pid = {}
            for reported, rank in self._reported_processes():
                self._ranks_by_pid.setdefault(reported, rank)
        if pid not in self._ranks_by_pid:
            self._ranks_by_pid[pid] = self._rank_beside(pid)
        return self._ranks_by_pid[pid]

    def _reported_processes(self) -> Iterator[tuple[str, int]]:
        """Process ids and ranks that reports of exits and Ray connect."""
        text = self._both_ends()
        patterns = [_EXIT_REPORT, _RAY_SETUP, _RAY_TAG] if "pid=" in text else [_EXIT_REPORT]
        for pattern in patterns:
            for found in pattern.finditer(text):
                yield found["pid"], int(found["rank"])

    def _rank_beside(self, pid: str) -> int | None:
        """The rank of the first line that names the process id and a rank."""
        text, at = self._both_ends(), -1
        for _ in range(_MENTIONS):
            at = text.find(pid, at + 1)
            if at < 0:
                return None
            if text[at - 1 : at].isalnum() or text[at + len(pid) : at + len(pid) + 1].isalnum():
                continue
            begin = text.rfind("\n", max(0, at - _LINE_RANGE), at) + 1
            end = text.find("\n", at, at + _LINE_LENGTH)
            rank = self._rank_in_line(text[begin : end if end > 0 else at + _CUT_LENGTH])
            if rank is not None:
                return rank
        return None

    def _rank_in_line(self, line: str) -> int | None:
        rank = parse_header(line, labelled=self._labelled).rank
        if rank is None:
            rank = self.logger_rank(line)
        return rank_in_message(line) if rank is None else rank

    def rank_near(self, offset: int) -> int | None:
        """The rank that most likely printed the line at an offset: the one whose own lines end there or before."""
        style = self.prefix_style
        if not style.has_logger_ranks or style.name not in {"", "host"}:
            return None
        before = self._logger_ranks(max(0, offset - _NEAR), offset)
        after = set(self._logger_ranks(offset, min(len(self._text), offset + _NEAR)))
        if not before:
            return None
        stopped = set(before) - after
        if len(stopped) == 1:
            return stopped.pop()
        if after:
            return next((rank for rank in reversed(before) if rank in stopped), None)
        counts = Counter(before[-len(style.ranks) * _RECENT_LINES :])
        fewest = min(counts.values())
        least = [rank for rank, count in counts.items() if count == fewest]
        return least[0] if len(least) == 1 else before[-1]

    def _logger_ranks(self, begin: int, end: int) -> list[int]:
        found = (logger_rank(line) for line in self._text[begin:end].split("\n"))
        return [rank for rank in found if rank is not None]
