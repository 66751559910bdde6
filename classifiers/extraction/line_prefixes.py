"""Line prefixes of a log that several processes write to, detected from the log itself.

Launchers prefix each line (`mpiexec -l`, `srun --label`, Kubernetes' log tools, Compose, pdsh), loggers only their own
(`[rank 3]`, `rank=3`, a JSON field). A prefix that is a bare number counts only where a sample of the log confirms it:
few different numbers that come back.

Sources: MPICH `-l`, Slurm `srun --label`, Open MPI and Horovod `--tag-output`, torchrun `--tee`, Ray, kubectl
`--prefix`, stern, Docker Compose, pdsh; Kubeflow's PyTorchJob counts its master as rank 0 and its workers from 1.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.extraction.line_headers import first_usual_line
from classifiers.signatures import LinePattern

_TIME: Final = (
    r"[ \t]{0,6}(?:[\[(]?(?:20\d\d[-/]\d\d[-/]\d\d[T _]|[A-Z][a-z]{2} [ \d]\d )?"
    r"\d\d:\d\d:\d\d(?:[.,]\d{1,9}+)?+(?:Z|[+-]\d\d:?\d\d)?+"
    r"[\])]?+[ :,|-]{0,3}+)?"  # possessive: no prefix begins with one of these
)
# A prefix before every line, as launchers write it; the name of the group is the name of the style.
LINE_PREFIX: Final = re.compile(
    rf"^{_TIME}(?:"
    r"\[(?P<square>\d{1,4})\] ?"
    r"|(?P<colon>\d{1,4}):(?!\d\d:\d\d) ?"
    r"|\((?P<round>\d{1,4})\) ?"
    r"|<(?P<angle>\d{1,4})> ?"
    r"|(?P<bar>\d{1,4}) ?\| ?"
    r"|\[?(?:pod/)?(?P<pod>[a-z][a-z0-9.-]{0,60}-\d{1,4}(?:-[a-z0-9]{5})?)(?:/[\w.-]{1,40})?"
    r"(?:\] | {1,12}\| ?|: | [a-z][\w-]{1,30}(?: |$))"  # stern: an indented or an empty message follows as it is
    r"|\[(?P<place>[A-Za-z][\w.-]{0,60}:\d{1,4})\] ?"
    r"|(?P<host>[A-Za-z][A-Za-z.-]{0,40}\d[A-Za-z0-9.-]{0,40}): (?! )"
    r")",
    re.MULTILINE,
)
# The same without look-ahead and without possessive quantifiers, which are not in a linear-time engine: it matches at
# least where `LINE_PREFIX` does in ASCII, and searches several lines in a part of its time.
_NOT_LINEAR: Final = re.compile(r"\(\?[=!](?:[^()\\]|\\.)*\)|(?<=[?}])\+")
_MAY_HAVE_PREFIX: Final = LinePattern(f"(?m){_NOT_LINEAR.sub('', LINE_PREFIX.pattern)}")
# The rank that a program's logger puts somewhere in the header of a line.
_LOGGER_RANK: Final = re.compile(
    r"(?:(?<![A-Za-z])(?:global_?|world_?)?(?:[Rr]ank|RANK|[Pp]rocess(?:_id|_index)?|[Pp]roc|trainer|worker)[\"']?"
    r"[ :=#._-]{0,3}|[.-] ?r)"
    r"(?P<rank>\d{1,4})(?:/\d{1,5})?[\"']?(?!:\d)(?=[\])>|:,}\s])(?! of\b| steps| workers| \w+ (?:of|finished))",
)
_LOGGER_HINT: Final = re.compile(r"ank|ANK|roc|trainer|worker|[.-] ?r\d")  # is part of every match
_MAY_HAVE_RANK: Final = LinePattern(_LOGGER_HINT.pattern)
_POD: Final = re.compile(
    r"^(?P<base>.*?)(?:(?P<role>worker|master|chief|ps|launcher|node|replica|trainer)-)?(?:\d-)?(?P<n>\d{1,4})"
    r"(?:-[a-z0-9]{5})?$"
)
_POD_NUMBER: Final = re.compile(r"-(?P<n>\d{1,4})(?:-[a-z0-9]{5})?$")
# Larger numbers are no ranks (judgement: above the largest jobs).
MOST_RANKS: Final = 4_096
# What is sampled and read (judgement: enough to tell a prefix, cheap on every log).
_SAMPLE_LINES: Final = 14
_SAMPLE_LENGTH: Final = 2_400  # characters
_LOGGER_RANGE: Final = 110
_PROBE_LINES: Final = 14
_PROBE_STEP: Final = 4
_STRETCH_LINES: Final = 600
_STRETCH_LENGTH: Final = 60_000
# When a prefix counts (judgement).
_FEWEST_LINES: Final = 3
_SHARE_OF_LINES: Final = 0.5
_SHARE_OF_NAMED_LINES: Final = 0.85  # hosts and pods are on every line


@dataclass(frozen=True, slots=True)
class PrefixStyle:
    """How the lines of a log are prefixed.

    Attributes:
        name: the group of `LINE_PREFIX` that launchers of this log write, "" for none.
        has_logger_ranks: whether loggers put ranks in their own lines.
        ranks: the ranks that were seen.
        has_master: whether a pod of a master is among the writers.
    """

    name: str = ""
    has_logger_ranks: bool = False
    ranks: frozenset[int] = frozenset()
    has_master: bool = False

    def accepts(self, group: str | None) -> bool:
        """Whether a match of a group of `LINE_PREFIX` is of this style; a host's name may look like a pod's."""
        return group == self.name or (self.name == "host" and group == "pod")

    def read(self, prefix: str) -> tuple[int | None, str | None]:
        """Rank and host that a prefix names."""
        match self.name:
            case "host":
                return None, prefix
            case "pod":
                return pod_rank(prefix, has_master=self.has_master), None
            case "place":
                host, _, rank = prefix.rpartition(":")
                return int(rank), host
            case _:
                return int(prefix), None


def sample_lines(text: str) -> list[list[str]]:
    """Full lines from the beginning of a text, two places within, and its end; of a short text one list."""
    text = text[first_usual_line(text) :]
    if len(text) <= 3 * _SAMPLE_LENGTH:
        lines = [line for line in text.split("\n") if line.strip()]
        step = max(1, len(lines) // (3 * _SAMPLE_LINES)) if len(lines) > 3 * _SAMPLE_LINES else 1
        return [lines[::step]]
    out: list[list[str]] = []
    for begin in (0, len(text) // 3, len(text) * 2 // 3, len(text) - _SAMPLE_LENGTH):
        at = text.find("\n", begin) + 1 if begin else 0
        piece = text[at : begin + _SAMPLE_LENGTH]
        lines = list(filter(str.strip, piece.split("\n", _SAMPLE_LINES)[:-1]))
        if len(lines) < _SAMPLE_LINES:  # few, or some of them empty
            lines = list(filter(str.strip, piece.split("\n")[:-1]))[:_SAMPLE_LINES]
        out.append(lines)
    return out


def detect_style(samples: list[list[str]], text: str = "", *, has_master: bool = False) -> PrefixStyle:
    """How the lines of a log are prefixed.

    A few sampled lines show whether any are; then enough of the log is read for the prefixes of many ranks to come
    back.

    Args:
        samples: lines of the log (`sample_lines`).
        text: the log, where it is longer than the samples.
        has_master: whether a pod of a master is among the writers.
    """
    lines = [line for part in samples for line in part]
    if not _may_have_ranks(lines):
        return PrefixStyle()
    counts = _count_prefixes(lines)
    name = _confirmed_style(counts, len(lines))
    if not name and (not counts.has_logger_ranks or _may_be_named(counts, len(lines))):
        more = _middle_lines(text)
        if more:
            found = _count_prefixes(more)
            name = _confirmed_style(found, len(more))
            counts = found if name or not counts.has_logger_ranks else counts
    if name == "pod" and not _are_replicas(counts.prefixes["pod"]):
        counts = _PrefixCounts(_count_prefixes(_middle_lines(text)).prefixes, counts.logger_ranks)
        name = "pod" if _are_replicas(counts.prefixes.get("pod", ())) else "host"
    ranks = _ranks_of(name, counts, has_master=has_master)
    if counts.has_logger_ranks:
        ranks |= frozenset(counts.logger_ranks)
    return PrefixStyle(name, counts.has_logger_ranks, ranks, has_master)


@dataclass(frozen=True, slots=True)
class _PrefixCounts:
    """How often each prefix occurs, by style, and each rank that loggers name."""

    prefixes: dict[str, Counter[str]]
    logger_ranks: Counter[int]

    @property
    def has_logger_ranks(self) -> bool:
        """Whether the ranks that loggers name come back."""
        ranks = self.logger_ranks
        return len(ranks) > 1 and ranks.total() > max(_FEWEST_LINES, 2 * len(ranks) - 1)


def _may_have_ranks(lines: list[str]) -> bool:
    """Whether some of the lines have a prefix or name a rank."""
    if len(lines) < _FEWEST_LINES:
        return False
    some = lines[:: max(1, len(lines) // _PROBE_LINES)]
    probed = some[::_PROBE_STEP]
    if _may_match(_MAY_HAVE_PREFIX, probed) and any(map(LINE_PREFIX.match, probed)):
        return True
    return (
        _may_match(_MAY_HAVE_RANK, some) and sum(rank is not None for rank in map(logger_rank, some)) >= _FEWEST_LINES
    )


def _ranks_of(name: str, counts: _PrefixCounts, *, has_master: bool) -> frozenset[int]:
    """The ranks that the prefixes of a style name."""
    if not name or name == "host":
        return frozenset()
    style = PrefixStyle(name, has_master=has_master)
    ranks = (style.read(prefix)[0] for prefix in counts.prefixes[name])
    return frozenset(rank for rank in ranks if rank is not None)


def _may_match(pattern: LinePattern, lines: Sequence[str]) -> bool:
    """Whether a pattern in ASCII matches in one of the lines; lines with other characters may always match."""
    text = "\n".join(lines)
    return not text.isascii() or pattern.matches(text.encode())


def _count_prefixes(lines: list[str]) -> _PrefixCounts:
    prefixes: dict[str, Counter[str]] = {}
    logger_ranks: Counter[int] = Counter()
    for line in lines:
        found = LINE_PREFIX.match(line)
        if found is not None and found.lastgroup is not None:
            prefixes.setdefault(found.lastgroup, Counter())[found[found.lastgroup]] += 1
    if _may_match(_MAY_HAVE_RANK, lines):
        logger_ranks.update(rank for rank in map(logger_rank, lines) if rank is not None)
    return _PrefixCounts(prefixes, logger_ranks)


def _middle_lines(text: str) -> list[str]:
    """Consecutive lines from the middle of a text."""
    begin = max(0, len(text) // 2 - _STRETCH_LENGTH // 2)
    return [line for line in text[begin : begin + _STRETCH_LENGTH].split("\n")[1:-1] if line.strip()][:_STRETCH_LINES]


def _are_replicas(names: Iterable[str]) -> bool:
    """Whether the numbers of names count up from 0 or 1, as those of replicas do and those of hosts rarely.

    Kubernetes writes no zero before a number.
    """
    written = {one["n"] for name in names if (one := _POD_NUMBER.search(name)) is not None}
    numbers = set(map(int, written))
    if any(len(number) > 1 and number.startswith("0") for number in written):
        return False
    return bool(numbers) and min(numbers) <= 1 and max(numbers) < 2 * len(numbers) + 2


def _confirmed_style(counts: _PrefixCounts, lines: int) -> str:
    """The most frequent style that is confirmed by its counts, "" for none."""
    by_count = sorted(counts.prefixes.items(), key=lambda one: -one[1].total())
    return next((name for name, prefixes in by_count if _is_confirmed(name, prefixes, lines)), "")


def _may_be_named(counts: _PrefixCounts, lines: int) -> bool:
    """Whether most lines have the name of a host or pod: a job script may print a banner before the launcher starts."""
    return any(counts.prefixes.get(name, Counter()).total() > _SHARE_OF_LINES * lines for name in ("host", "pod"))


def _is_confirmed(name: str, prefixes: Counter[str], lines: int) -> bool:
    """Whether few different prefixes of a style are on many of the lines."""
    total = prefixes.total()
    if total < _FEWEST_LINES or total < _SHARE_OF_LINES * lines:
        return False
    if name in {"host", "pod"}:
        return total > _SHARE_OF_NAMED_LINES * lines and len(prefixes) <= max(2, total // 3)
    ranks = [int(prefix.rpartition(":")[2]) for prefix in prefixes]
    if max(ranks) >= MOST_RANKS or len(prefixes) > max(2, 2 * total // 3):
        return False
    return max(ranks) < 4 * len(ranks) + 8  # ranks lie close together


def logger_rank(line: str) -> int | None:
    """The rank that a logger names in the header of a line, None without one."""
    header = line[:_LOGGER_RANGE]
    if _LOGGER_HINT.search(header) is None:
        return None
    found = _LOGGER_RANK.search(header)
    return None if found is None else int(found["rank"])


def pod_rank(name: str, *, has_master: bool) -> int | None:
    """The rank of a pod by its name, None of a launcher or parameter server.

    Args:
        name: the name of the pod.
        has_master: whether a pod of a master is among the writers: workers count from 1 then.
    """
    found = _POD.match(name)
    if found is None:
        return None
    number = int(found["n"])
    if found["role"] in {"master", "chief"}:
        return 0
    if found["role"] in {"ps", "launcher"}:
        return None
    return number + 1 if has_master and found["role"] == "worker" else number
