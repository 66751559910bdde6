"""How the lines of a text that several processes wrote to are marked: learned from the text itself.

Launchers mark each line (`mpiexec -l`, `srun --label`, Kubernetes' log tools, Compose, pdsh), loggers only their own
(`[rank 3]`, `rank=3`, a JSON field), and some mark a process by its number, which other lines tie to a rank. A mark
with a bare number counts only where a sample of the text bears it out: few different numbers that come back.

Sources: MPICH `-l`, Slurm `srun --label`, Open MPI and Horovod `--tag-output`, torchrun `--tee`, Ray, kubectl
`--prefix`, stern, Docker Compose, pdsh; Kubeflow's PyTorchJob counts its master as rank 0 and its workers from 1.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_HEAD_LINES: Final = 14
_CHUNK: Final = 2_400
_TIME: Final = (
    r"[ \t]{0,6}(?:[\[(]?(?:20\d\d[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"[\])]?+[ :,|-]{0,3}+)?"  # possessive: no mark begins with one of these
)
# A mark before every line, in the launchers' ways; the group's name is the way.
LINE_MARK: Final = re.compile(
    rf"^{_TIME}(?:"
    r"\[(?P<square>\d{1,4})\] ?"
    r"|(?P<colon>\d{1,4}): ?"
    r"|\((?P<round>\d{1,4})\) ?"
    r"|<(?P<angle>\d{1,4})> ?"
    r"|(?P<bar>\d{1,4}) ?\| ?"
    r"|\[?(?:pod/)?(?P<pod>[a-z][a-z0-9.-]{0,60}-\d{1,4}(?:-[a-z0-9]{5})?)(?:/[\w.-]{1,40})?"
    r"(?:\] | {1,12}\| ?|: | [a-z][\w-]{1,30} (?=\S))"
    r"|\[(?P<place>[A-Za-z][\w.-]{0,60}:\d{1,4})\] ?"
    r"|(?P<host>[A-Za-z][A-Za-z.-]{0,40}\d[A-Za-z0-9.-]{0,40}): (?! )"
    r")",
    re.MULTILINE,
)
_WAYS: Final = ("square", "colon", "round", "angle", "bar", "pod", "place", "host")
# A mark of a program's own logger, somewhere in the head of a line.
_OWN_MARK: Final = re.compile(
    r"(?:(?<![A-Za-z])(?:global_?|world_?)?(?:[Rr]ank|RANK|[Pp]rocess(?:_id|_index)?|[Pp]roc|trainer|worker)[\"']?"
    r"[ :=#._-]{0,3}|[.-] ?r)"
    r"(?P<rank>\d{1,4})(?:/\d{1,5})?[\"']?(?!:\d)(?=[\])>|:,}\s])(?! of\b| steps| workers| \w+ (?:of|finished))",
)
_OWN_WORDS: Final = ("ank", "ANK", "roc", "trainer", "worker")
_OWN_LETTER: Final = re.compile(r"[.-] ?r\d")
_R_NUMBER: Final = re.compile(r"r\d")  # stands in all that the one above finds, and is found faster
_OWN_HINT: Final = re.compile(r"ank|ANK|roc|trainer|worker|[.-] ?r\d")
_OWN_LOOK: Final = 110
_POD: Final = re.compile(
    r"^(?P<base>.*?)(?:(?P<role>worker|master|chief|ps|launcher|node|replica|trainer)-)?(?:\d-)?(?P<n>\d{1,4})"
    r"(?:-[a-z0-9]{5})?$"
)
_POD_NUMBER: Final = re.compile(r"-(?P<n>\d{1,4})(?:-[a-z0-9]{5})?$")
_ENOUGH: Final = 14
_FEW: Final = 3
_PROBE: Final = 4
_WIDE: Final = 600
_STRETCH: Final = 60_000
_WHOLE: Final = 0.85
_MOST: Final = 0.5
MOST_RANKS: Final = 4_096


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
        piece = text[at : begin + _CHUNK]
        lines = list(filter(str.strip, piece.split("\n", _HEAD_LINES)[:-1]))
        if len(lines) < _HEAD_LINES:  # few, or some of them empty
            lines = list(filter(str.strip, piece.split("\n")[:-1]))[:_HEAD_LINES]
        out.append(lines)
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
    likely = any(LINE_MARK.match(line) for line in some[::_PROBE])
    if not likely and not _hints("\n".join(some)):
        return Way()
    if not likely and sum(number is not None for number in map(own_rank, some)) < _FEW:
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
        ranks = frozenset(one for one in (pod_rank(word, master=master) for word in found[name]) if one is not None)
    elif name == "place":
        ranks = frozenset(int(one.rpartition(":")[2]) for one in found[name])
    return Way(name, tells, ranks | (frozenset(own) if tells else frozenset()), master)


def _hints(text: str) -> bool:
    """Whether `_OWN_HINT` is found in a text, the words looked for first: several times faster on a text without."""
    for word in _OWN_WORDS:
        if word in text:
            return True
    return _R_NUMBER.search(text) is not None and _OWN_LETTER.search(text) is not None


def _marks_of(lines: list[str]) -> tuple[dict[str, Counter[str]], Counter[int]]:
    """The marks of lines by way, and the ranks that loggers tell."""
    found: dict[str, Counter[str]] = {}
    own: Counter[int] = Counter()
    for line in lines:
        hit = LINE_MARK.match(line)
        if hit is not None and hit.lastgroup is not None:
            found.setdefault(hit.lastgroup, Counter())[hit[hit.lastgroup]] += 1
    if _hints("\n".join(lines)):
        own.update(number for number in map(own_rank, lines) if number is not None)
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
    numbers = [int(one.rpartition(":")[2]) for one in marks]
    if max(numbers) >= MOST_RANKS or len(marks) > max(2, 2 * total // 3):
        return False
    return max(numbers) < 4 * len(numbers) + 8  # ranks lie close together


def own_rank(line: str) -> int | None:
    """The rank by which a logger's mark in the head of a line names its writer, None without one."""
    head = line[:_OWN_LOOK]
    if _OWN_HINT.search(head) is None:
        return None
    hit = _OWN_MARK.search(head)
    return None if hit is None else int(hit["rank"])


def pod_rank(name: str, *, master: bool) -> int | None:
    """The rank of a pod by its name, None of a launcher or parameter server; `master`: one of that name is there."""
    hit = _POD.match(name)
    if hit is None:
        return None
    number = int(hit["n"])
    if hit["role"] in {"master", "chief"}:
        return 0
    if hit["role"] in {"ps", "launcher"}:
        return None
    return number + 1 if master and hit["role"] == "worker" else number
