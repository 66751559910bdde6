"""Who wrote a line of a text that several processes wrote to: learned from the text itself.

Launchers mark each line (`mpiexec -l`, `srun --label`, Kubernetes' log tools, Compose, pdsh), loggers only their own
(`[rank 3]`, `rank=3`, a JSON field), and some mark a process by its number, which other lines tie to a rank. A mark with
a bare number counts only where a sample of the text bears it out: few different numbers that come back.

Sources: MPICH `-l`, Slurm `srun --label`, Open MPI and Horovod `--tag-output`, torchrun `--tee`, Ray, kubectl
`--prefix`, stern, Docker Compose, pdsh; Kubeflow's PyTorchJob counts its master as rank 0 and its workers from 1.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from classifiers.chatter import Chatter
from classifiers.lines import Head, head_of, inner_rank

_HEAD_LINES: Final = 14
_CHUNK: Final = 2_400
_TIME: Final = r"[ \t]{0,6}(?:[\[(]?(?:20\d\d[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?[ :,|-]{0,3})?"
# A mark before every line, in the launchers' ways; the group's name is the way.
_LINE_MARK: Final = re.compile(
    rf"^{_TIME}(?:"
    r"\[(?P<square>\d{1,4})\] ?"
    r"|(?P<colon>\d{1,4}): ?"
    r"|\((?P<round>\d{1,4})\) ?"
    r"|<(?P<angle>\d{1,4})> ?"
    r"|(?P<bar>\d{1,4}) ?\| ?"
    r"|\[?(?:pod/)?(?P<pod>[a-z][a-z0-9.-]{0,60}-\d{1,4}(?:-[a-z0-9]{5})?)(?:/[\w.-]{1,40})?(?:\] |(?: {1,12})\| ?|: | [a-z][\w-]{1,30} (?=\S))"
    r"|\[(?P<place>[A-Za-z][\w.-]{0,60}:\d{1,4})\] ?"
    r"|(?P<host>[A-Za-z][A-Za-z.-]{0,40}\d[A-Za-z0-9.-]{0,40}): (?! )"
    r")",
    re.MULTILINE,
)
_WAYS: Final = ("square", "colon", "round", "angle", "bar", "pod", "place", "host")
# A mark of a program's own logger, somewhere in the head of a line.
_OWN_MARK: Final = re.compile(
    r"(?:(?<![A-Za-z])(?:global_?|world_?)?(?:[Rr]ank|RANK|[Pp]rocess(?:_id|_index)?|[Pp]roc|trainer|worker)[\"']?[ :=#._-]{0,3}|[.-] ?r)"
    r"(?P<rank>\d{1,4})(?:/\d{1,5})?[\"']?(?!:\d)(?=[\])>|:,}\s])(?! of\b| steps| workers| \w+ (?:of|finished))",
)
_OWN_HINT: Final = re.compile(r"ank|ANK|roc|trainer|worker|[.-] ?r\d")
_OWN_LOOK: Final = 110
_POD: Final = re.compile(
    r"^(?P<base>.*?)(?:(?P<role>worker|master|chief|ps|launcher|node|replica|trainer)-)?(?:\d-)?(?P<n>\d{1,4})(?:-[a-z0-9]{5})?$"
)
_POD_NUMBER: Final = re.compile(r"-(?P<n>\d{1,4})(?:-[a-z0-9]{5})?$")
_WORLD: Final = re.compile(
    r"\b(?:[Ww]orld[_ ]?[Ss]ize|WORLD_SIZE|num_processes|nranks|nproc)[\"']?[ =:]{1,3}(\d{1,5})\b|\b[Rr]ank[ :]\d{1,5}(?: of |/)(\d{1,5})\b"
    r"|\bprocess \d{1,5} of (\d{1,5})\b"
)
_WORLD_LOOK: Final = 30_000
_REPORTED: Final = re.compile(
    r"rank +: (?P<rank>\d{1,6}) \(local_rank: \d+\)\n[^\n]{0,40}exitcode +: -?\d+ \(pid: (?P<pid>\d+)\)"
)
_GROUP: Final = re.compile(r"pid=(?P<pid>\d{2,8})\b[^\n]{0,200}?\b(?:world_)?rank=(?P<rank>\d{1,5})\b")
_RAY_TAG: Final = re.compile(r"pid=(?P<pid>\d{2,8})[^)\n]{0,40}\) {0,2}\[[Rr]ank ?(?P<rank>\d{1,5})\]")
_LOCAL: Final = re.compile(
    r"\[default(?P<l1>\d{1,4})\]:[^\n]{0,60}?\[rank ?(?P<r1>\d{1,6})\]|\brank +: (?P<r2>\d{1,6}) \(local_rank: (?P<l2>\d{1,4})\)"
)
_ENOUGH: Final = 14
_FEW: Final = 3
_PROBE: Final = 4
_WIDE: Final = 600
_STRETCH: Final = 60_000
_WHOLE: Final = 0.85
_MOST: Final = 0.5
_FAR: Final = 48_000
_GLOG: Final = re.compile(r"^\W{0,3}[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?P<pid>\d{2,8}) ")
_PLACE: Final = re.compile(r"\[[A-Za-z][\w.-]{0,80}:(?P<pid>\d{2,8})\s?(?::\d+:\d+)?\]")
_NUMBERED: Final = 4_096


@dataclass(frozen=True, slots=True)
class Way:
    """How lines of a text are marked: `name` of the launcher's way or "", whether a logger marks its own lines."""

    name: str = ""
    own: bool = False
    ranks: frozenset[int] = frozenset()
    master: bool = False


def sample(text: str) -> list[list[str]]:
    """Full lines from the text's beginning, two places within, and its end; a short text's all in one."""
    if len(text) <= 3 * _CHUNK:
        lines = [line for line in text.split("\n") if line.strip()]
        return [lines[:: max(1, len(lines) // (3 * _HEAD_LINES))] if len(lines) > 3 * _HEAD_LINES else lines]
    out: list[list[str]] = []
    for begin in (0, len(text) // 3, len(text) * 2 // 3, len(text) - _CHUNK):
        at = text.find("\n", begin) + 1 if begin else 0
        out.append([line for line in text[at : begin + _CHUNK].split("\n")[:-1] if line.strip()][:_HEAD_LINES])
    return out


def learn(samples: list[list[str]], text: str = "", *, master: bool = False) -> Way:
    """How the lines of a text are marked.

    A few sampled lines tell whether any are; then as many of `text` are read as it takes for marks of many ranks to
    come back. `master`: a pod of that name is among the writers.
    """
    lines = [line for part in samples for line in part]
    if len(lines) < _FEW:
        return Way()
    some = lines[:: max(1, len(lines) // _ENOUGH)]
    likely = any(_LINE_MARK.match(line) for line in some[::_PROBE])
    if not likely and _OWN_HINT.search("\n".join(some)) is None:
        return Way()
    if not likely and sum(number is not None for number in map(_own, some)) < _FEW:
        return Way()
    name = ""
    for more in (lines, _stretch(text)):
        if not more:
            continue
        found, own = _marks_of(more)
        ordered = sorted(found.items(), key=lambda one: -one[1].total())
        name = next((way for way, marks in ordered if _bears_out(way, marks, len(more))), "")
        tells = len(own) > 1 and own.total() > max(_FEW, 2 * len(own) - 1)  # they come back
        if name or tells:
            break
    if name == "pod" and not _are_ranks(found["pod"]):
        found = _marks_of(_stretch(text))[0]
        name = "pod" if _are_ranks(found.get("pod", ())) else "host"
    ranks: frozenset[int] = frozenset()
    if name in {"square", "colon", "round", "angle", "bar"}:
        ranks = frozenset(int(one) for one in found[name])
    elif name == "pod":
        ranks = frozenset(one for one in (_pod_rank(word, master=master) for word in found[name]) if one is not None)
    elif name == "place":
        ranks = frozenset(int(one.rpartition(":")[2]) for one in found[name])
    return Way(name, tells, ranks | (frozenset(own) if tells else frozenset()), master)


def _marks_of(lines: list[str]) -> tuple[dict[str, Counter[str]], Counter[int]]:
    """The marks of lines by way, and the ranks that loggers tell."""
    found: dict[str, Counter[str]] = {}
    own: Counter[int] = Counter()
    for line in lines:
        hit = _LINE_MARK.match(line)
        if hit is not None and hit.lastgroup is not None:
            found.setdefault(hit.lastgroup, Counter())[hit[hit.lastgroup]] += 1
    if _OWN_HINT.search("\n".join(lines)):
        own.update(number for number in map(_own, lines) if number is not None)
    return found, own


def _stretch(text: str) -> list[str]:
    """Lines that follow one another in the midst of a long text."""
    begin = max(0, len(text) // 2 - _STRETCH // 2)
    return [line for line in text[begin : begin + _STRETCH].split("\n")[1:-1] if line.strip()][:_WIDE]


def _are_ranks(names: Iterable[str]) -> bool:
    """Whether the numbers of names count up from 0 or 1, as replicas do and hosts rarely."""
    hits = (_POD_NUMBER.search(one) for one in names)
    numbers = {int(hit["n"]) for hit in hits if hit is not None}
    return bool(numbers) and min(numbers) <= 1 and max(numbers) < 2 * len(numbers) + 2


def _bears_out(way: str, marks: Counter[str], lines: int) -> bool:
    total = marks.total()
    if total < _FEW or total < _MOST * lines:
        return False
    if way in {"host", "pod"}:
        return total > _WHOLE * lines and len(marks) <= max(2, total // 3)
    if way == "place":
        numbers = [int(one.rsplit(":", 1)[1]) for one in marks]
    else:
        numbers = [int(one) for one in marks]
    if max(numbers) >= _NUMBERED or len(marks) > max(2, 2 * total // 3):
        return False
    return max(numbers) < 4 * len(numbers) + 8  # ranks lie close together


class Speakers:
    """The lines' writers of one text. `rank` is that of its stream, None if it has none."""

    def __init__(self, text: str, rank: int | None, *, mixed: bool, labelled: bool) -> None:
        self._text = text
        self._rank = rank
        self._mixed = mixed
        self._labelled = labelled
        self._way: Way | None = None
        self._samples: list[list[str]] | None = None
        self._chatter: Chatter | None = None
        self._pids: dict[str, int] | None = None
        self._base: dict[int, int] | None = None
        self.complaints: set[str] = set()
        self.voices: set[int] = set()

    @property
    def way(self) -> Way:
        """How the lines are marked; learned at the first asking."""
        if self._way is None:
            master = "-master-0" in self._text or "-chief-0" in self._text
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
        return ranks | frozenset(range(size)) if size <= _NUMBERED else ranks

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
        hit = _LINE_MARK.match(line)
        if hit is None or (hit.lastgroup != way.name and not (way.name == "host" and hit.lastgroup == "pod")):
            return head
        word = hit[hit.lastgroup or way.name]
        rest = head_of(line[hit.end() :])
        rank: int | None
        host = rest.host
        if way.name == "host":
            rank, host = None, host or word
        elif way.name == "pod":
            rank = _pod_rank(word, master=way.master)
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
        return _own(line)

    def writer(self, line: str, head: Head) -> int | None:
        """The rank that wrote a line whose head tells none, as far as the rest of the text gives it away."""
        if not self._mixed:
            return None
        mine = self.own_mark(line)
        if mine is not None:
            return mine
        pid = head.pid or process_of(line)
        return self.rank_of_pid(pid) if pid is not None else None

    def locals(self) -> dict[int, int]:
        """Ranks by local rank, as reports and doubly marked lines of this text tie them; only one node's."""
        if self._base is None:
            found: dict[int, set[int]] = {}
            for hit in _LOCAL.finditer(self._text, max(0, len(self._text) - 400_000)):
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
            text = self._text if len(self._text) <= 400_000 else self._text[:200_000] + "\n" + self._text[-200_000:]  # noqa: PLR2004 - enough of both ends
            for hit in _REPORTED.finditer(text):
                self._pids.setdefault(hit["pid"], int(hit["rank"]))
            if "pid=" in text:
                for pattern in (_GROUP, _RAY_TAG):
                    for hit in pattern.finditer(text):
                        self._pids.setdefault(hit["pid"], int(hit["rank"]))
        if pid not in self._pids:
            rank = self._tied(pid) if self._mixed or self._rank is None else self._of_stream(pid)
            if rank is None:
                return None
            self._pids[pid] = rank
        return self._pids[pid]

    def _of_stream(self, pid: str) -> int | None:
        return self._rank if re.search(rf"(?<!\d){pid}(?!\d)", self._text[:200_000]) is not None else None

    def _tied(self, pid: str) -> int | None:
        at = -1
        for _ in range(12):
            at = self._text.find(pid, at + 1)
            if at < 0:
                return None
            if self._text[at - 1 : at].isalnum() or self._text[at + len(pid) : at + len(pid) + 1].isalnum():
                continue
            begin = self._text.rfind("\n", max(0, at - 300), at) + 1
            end = self._text.find("\n", at, at + 400)
            line = self._text[begin : end if end > 0 else at + 200]
            rank = head_of(line, labelled=self._labelled).rank
            if rank is None:
                rank = self.own_mark(line)
            if rank is None:
                rank = inner_rank(line)
            if rank is not None:
                return rank
        return None

    def near(self, offset: int) -> int | None:
        """The rank that most likely wrote an unmarked line: one whose own marked lines end there, or stand before it."""
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
            last = next((rank for rank in reversed(before) if rank in stopped), None)
            return last
        counts = Counter(before[-len(way.ranks) * 6 :])
        fewest = min(counts.values())
        least = [rank for rank, count in counts.items() if count == fewest]
        return least[0] if len(least) == 1 else before[-1]

    def _marks(self, begin: int, end: int) -> list[int]:
        found = (_own(line) for line in self._text[begin:end].split("\n"))
        return [one for one in found if one is not None]


def _own(line: str) -> int | None:
    head = line[:_OWN_LOOK]
    if _OWN_HINT.search(head) is None:
        return None
    hit = _OWN_MARK.search(head)
    return None if hit is None else int(hit["rank"])


def process_of(line: str) -> str | None:
    """The process that the head of a line names: Google's logging, Open MPI's and UCX's `[host:pid]`."""
    hit = _GLOG.match(line) or _PLACE.search(line, 0, 160)
    return None if hit is None else hit["pid"].lstrip("0")


def _pod_rank(name: str, *, master: bool) -> int | None:
    hit = _POD.match(name)
    if hit is None:
        return None
    number = int(hit["n"])
    if hit["role"] in {"master", "chief"}:
        return 0
    if hit["role"] in {"ps", "launcher"}:
        return None
    return number + 1 if master and hit["role"] == "worker" else number
