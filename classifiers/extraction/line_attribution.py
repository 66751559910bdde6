"""Who wrote a line of a text that several processes wrote to.

By its marks (marks.py), by what other lines of the text tie to a process or a local rank, and where nothing is told by
whose words end there.

Sources: torchelastic's report and `--tee`, Ray Train, Google's logging, Open MPI, UCX.
"""

import re
from collections import Counter
from dataclasses import replace
from typing import Final

from classifiers.extraction.line_headers import Head, head_of, inner_rank
from classifiers.extraction.line_prefixes import LINE_MARK, MOST_RANKS, Way, learn, own_rank, pod_rank, sample
from classifiers.extraction.progress_lines import Chatter

_WORLD: Final = re.compile(
    r"\b(?:[Ww]orld[_ ]?[Ss]ize|WORLD_SIZE|num_processes|nranks|nproc)[\"']?[ =:]{1,3}(\d{1,5})\b"
    r"|\b[Rr]ank[ :]\d{1,5}(?: of |/)(\d{1,5})\b|\bprocess \d{1,5} of (\d{1,5})\b"
)
_WORLD_LOOK: Final = 30_000
_REPORTED: Final = re.compile(
    r"rank +: (?P<rank>\d{1,6}) \(local_rank: \d+\)\n[^\n]{0,40}exitcode +: -?\d+ \(pid: (?P<pid>\d+)\)"
)
_GROUP: Final = re.compile(r"pid=(?P<pid>\d{2,8})\b[^\n]{0,120}?\b(?:world_)?rank=(?P<rank>\d{1,5})\b")
_RAY_TAG: Final = re.compile(r"pid=(?P<pid>\d{2,8})[^)\n]{0,40}\) {0,2}\[[Rr]ank ?(?P<rank>\d{1,5})\]")
_LOCAL: Final = re.compile(
    r"\[default(?P<l1>\d{1,4})\]:[^\n]{0,60}?\[rank ?(?P<r1>\d{1,6})\]"
    r"|\brank +: (?P<r2>\d{1,6}) \(local_rank: (?P<l2>\d{1,4})\)"
)
_FAR: Final = 48_000
_GLOG: Final = re.compile(r"^\W{0,3}[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?P<pid>\d{2,8}) ")
_PLACE: Final = re.compile(r"\[[A-Za-z][\w.-]{0,80}:(?P<pid>\d{2,8})\s?(?::\d+:\d+)?\]")
_END: Final = 200_000


class Speakers:
    """The lines' writers of one text. `rank` is that of its stream, None if it has none.

    `master`: whether a name of a master's pod may stand in the text.
    """

    def __init__(self, text: str, rank: int | None, *, mixed: bool, labelled: bool, master: bool = True) -> None:
        self._text = text
        self._rank = rank
        self._mixed = mixed
        self._labelled = labelled
        self._master = master
        self._way: Way | None = None
        self._samples: list[list[str]] | None = None
        self._chatter: Chatter | None = None
        self._pids: dict[str, int | None] | None = None
        self._ends: str | None = None
        self._base: dict[int, int] | None = None
        self.complaints: set[str] = set()
        self.voices: set[int] = set()

    @property
    def way(self) -> Way:
        """How the lines are marked; learned at the first asking."""
        if self._way is None:
            master = self._master and ("-master-0" in self._text or "-chief-0" in self._text)
            self._way = learn(self.samples, self._text, master=master) if self._mixed else Way()
        return self._way

    @property
    def samples(self) -> list[list[str]]:
        """Some lines of the text's beginning, midst and end."""
        if self._samples is None:
            self._samples = sample(self._text)
        return self._samples

    @property
    def chatter(self) -> Chatter:
        """The ranks' daily talk."""
        if self._chatter is None:
            self._chatter = Chatter(self._text, lambda: (self.samples, len(self.way.ranks)))
        return self._chatter

    @property
    def known(self) -> frozenset[int]:
        """The ranks that are known to take part, as far as that was looked at."""
        ranks = self._way.ranks if self._way is not None else frozenset()
        hit = _WORLD.search(self._text, 0, _WORLD_LOOK)
        size = int(next(one for one in hit.groups() if one)) if hit is not None else 0
        return ranks | frozenset(range(size)) if size <= MOST_RANKS else ranks

    def heard(self, line: str, same: str) -> None:
        """Counts a further line of words that were a complaint before to its rank's voice."""
        if same in self.complaints:
            rank = self.head(line).rank
            rank = inner_rank(line) if rank is None else rank
            if rank is not None:
                self.voices.add(rank)

    @property
    def several(self) -> bool:
        """Whether lines of more than one rank stand in the text."""
        return self._mixed and len(self.way.ranks) > 1

    def head(self, line: str) -> Head:
        """What the head of a line tells, the text's own marks included."""
        head = head_of(line, labelled=self._labelled)
        if not self._mixed:
            return head
        if head.rank is None or line[:1] not in "[(" or line.startswith("[pod"):
            head = self._marked(line, head)
        if head.local and head.rank is not None:
            known = self.locals().get(head.rank)
            head = replace(head, rank=known, local=False) if known is not None else head
        if head.rank is None and head.pid is not None:
            rank = self.rank_of_pid(head.pid)
            if rank is not None:
                return replace(head, rank=rank)
        return head

    def _marked(self, line: str, head: Head) -> Head:
        way = self.way
        if not way.name:
            return head
        hit = LINE_MARK.match(line)
        if hit is None or (hit.lastgroup != way.name and not (way.name == "host" and hit.lastgroup == "pod")):
            return head
        word = hit[hit.lastgroup or way.name]
        rest = head_of(line[hit.end() :])
        rank: int | None
        host = rest.host
        if way.name == "host":
            rank, host = None, host or word
        elif way.name == "pod":
            rank = pod_rank(word, master=way.master)
        elif way.name == "place":
            host, _, number = word.rpartition(":")
            rank = int(number)
        else:
            rank = int(word)
        if rest.rank is not None and not rest.local:
            rank = rest.rank
        return Head(
            rank=rank,
            local=rest.local and rank is None,
            pid=rest.pid or head.pid,
            host=host,
            gpu=rest.gpu,
            body=hit.end() + rest.body,
        )

    def own_mark(self, line: str) -> int | None:
        """The rank by which a program's logger marks a line, where the text bears out that it does."""
        if not self._mixed or not self.way.own:
            return None
        return own_rank(line)

    def writer(self, line: str, head: Head) -> int | None:
        """The rank that wrote a line whose head tells none, as far as the rest of the text gives it away."""
        if not self._mixed:
            return None
        mine = self.own_mark(line)
        if mine is not None:
            return mine
        pid = head.pid or process_of(line)
        return self.rank_of_pid(pid) if pid is not None else None

    def _both_ends(self) -> str:
        """The text, of a very long one its beginning and end: what ties names together stands there."""
        if self._ends is None:
            long = len(self._text) > 2 * _END
            self._ends = f"{self._text[:_END]}\n{self._text[-_END:]}" if long else self._text
        return self._ends

    def locals(self) -> dict[int, int]:
        """Ranks by local rank, as reports and doubly marked lines of this text tie them; only one node's."""
        if self._base is None:
            found: dict[int, set[int]] = {}
            text = self._both_ends()
            tied = "[default" in text or "(local_rank: " in text  # far cheaper than the search
            for hit in _LOCAL.finditer(text) if tied else ():
                local, rank = int(hit["l1"] or hit["l2"]), int(hit["r1"] or hit["r2"])
                found.setdefault(local, set()).add(rank)
            offsets = {rank - local for local, ranks in found.items() for rank in ranks}
            base = offsets.pop() if len(offsets) == 1 else None
            self._base = {} if base is None else {local: local + base for local in range(64)}
        return self._base

    def rank_of_pid(self, pid: str) -> int | None:
        """The rank of a process, where a line of this text ties the two together."""
        if self._pids is None:
            self._pids = {}
            text = self._both_ends()
            for hit in _REPORTED.finditer(text):
                self._pids.setdefault(hit["pid"], int(hit["rank"]))
            if "pid=" in text:
                for pattern in (_GROUP, _RAY_TAG):
                    for hit in pattern.finditer(text):
                        self._pids.setdefault(hit["pid"], int(hit["rank"]))
        if pid not in self._pids:
            self._pids[pid] = self._tied(pid) if self._mixed or self._rank is None else self._of_stream(pid)
        return self._pids[pid]

    def _of_stream(self, pid: str) -> int | None:
        return self._rank if re.search(rf"(?<!\d){pid}(?!\d)", self._both_ends()) is not None else None

    def _tied(self, pid: str) -> int | None:
        text, at = self._both_ends(), -1
        for _ in range(12):
            at = text.find(pid, at + 1)
            if at < 0:
                return None
            if text[at - 1 : at].isalnum() or text[at + len(pid) : at + len(pid) + 1].isalnum():
                continue
            begin = text.rfind("\n", max(0, at - 300), at) + 1
            end = text.find("\n", at, at + 400)
            line = text[begin : end if end > 0 else at + 200]
            rank = head_of(line, labelled=self._labelled).rank
            if rank is None:
                rank = self.own_mark(line)
            if rank is None:
                rank = inner_rank(line)
            if rank is not None:
                return rank
        return None

    def near(self, offset: int) -> int | None:
        """The rank that most likely wrote an unmarked line: whose own marked lines end there, or stand before it."""
        way = self.way
        if not way.own or way.name not in {"", "host"}:
            return None
        before = self._marks(max(0, offset - _FAR), offset)
        after = set(self._marks(offset, min(len(self._text), offset + _FAR)))
        if not before:
            return None
        stopped = set(before) - after
        if len(stopped) == 1:
            return stopped.pop()
        if after:
            return next((rank for rank in reversed(before) if rank in stopped), None)
        counts = Counter(before[-len(way.ranks) * 6 :])
        fewest = min(counts.values())
        least = [rank for rank, count in counts.items() if count == fewest]
        return least[0] if len(least) == 1 else before[-1]

    def _marks(self, begin: int, end: int) -> list[int]:
        found = (own_rank(line) for line in self._text[begin:end].split("\n"))
        return [one for one in found if one is not None]


def process_of(line: str) -> str | None:
    """The process that the head of a line names: Google's logging, Open MPI's and UCX's `[host:pid]`."""
    hit = _GLOG.match(line) or _PLACE.search(line, 0, 160)
    return None if hit is None else hit["pid"].lstrip("0")
