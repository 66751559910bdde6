"""Evidence items: the candidate lines that extraction ranks and that the classifier reads."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from classifiers.contracts import Case
from classifiers.extraction.onset import Onset
from classifiers.extraction.process_exits import ProcessExit
from classifiers.signatures import Signature
from classifiers.taxonomy import Role

_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")
NODE: Final = "node"
SCHEDULER: Final = "scheduler"
STRENGTH_ORDER: Final = {"decisive": 0, "strong": 1, "weak": 2}
ROLE_ORDER: Final[dict[Role, int]] = {"initiating": 0, "cascade": 1, "teardown": 2, "context": 3}


@dataclass(slots=True)
class EvidenceItem:
    """One candidate line of evidence.

    Attributes:
        text: the line, without terminal colours.
        role: what the line is to the failure.
        onset: how likely the failure began with it.
        stream: index of its text: the log streams in order, then the scheduler's message, then node events.
        position: order in which the items were found.
        offset: where the line begins in its text, in characters.
        line_number: 1-based number in its text; None for a node event.
        rank: the rank that printed it, None if unknown.
        node: the node that printed it, None if unknown.
        gpu: the device that its header names.
        time: seconds into the year, None if unknown.
        hits: the catalogue entries that match it.
        exception: the class of the exception that it names.
        message_start: where its message begins, after time, rank and host.
        error_words: the general words of failure in it.
        from_scheduler: whether it is part of the scheduler's message.
        missing_ranks: ranks that it reports as missing or lost, so that it is no beginning of its own rank.
        reports_exit: whether it is a launcher's report of a process exit, SIGTERM aside.
        reports_kill: whether it reports an exit by a signal that no process of the job sends to others.
        exited_ranks: the ranks (else local ranks) whose exits it reports.
        likely_rank: the rank that most likely printed a line that does not name its rank.
        start_offset: where its traceback begins, else `offset`.
        ends_process: whether its process does not go on after it: a traceback's final line, a decisive entry.
        rank_from_stream: whether `rank` is only that of the stream.
        raised_at: function and source line where the exception was raised, "" if unknown.
        set_aside: why a node event is not used as evidence, None if it is.
        derived: whether it sums up other records than a log, so that its words are no words of a log.
        uncorroborated: whether a node event is used although nothing else supports it.
        survived: whether the run went on after it.
        is_late: whether its process had been asked to end, or had lost the others, before it.
        explained: whether an earlier step of the job failed that explains it, so that its own words say nothing of why.
    """

    text: str
    role: Role
    onset: Onset
    stream: int
    position: int
    offset: int
    line_number: int | None
    rank: int | None = None
    node: str | None = None
    gpu: int | None = None
    time: float | None = None
    hits: tuple[Signature, ...] = ()
    exception: str | None = None
    message_start: int = 0
    error_words: frozenset[str] = field(default_factory=frozenset)
    from_scheduler: bool = False
    missing_ranks: tuple[int, ...] = ()
    reports_exit: bool = False
    reports_kill: bool = False
    exited_ranks: tuple[int, ...] = ()
    likely_rank: int | None = None
    start_offset: int = 0
    ends_process: bool = False
    rank_from_stream: bool = False
    raised_at: str = ""
    set_aside: str | None = None
    derived: bool = False
    uncorroborated: bool = False
    survived: bool = False
    is_late: bool = False
    explained: bool = False

    @property
    def message(self) -> str:
        """The line without its header (time, rank, host)."""
        return self.text[self.message_start :] if self.message_start < len(self.text) else self.text

    @property
    def is_node_event(self) -> bool:
        """Whether it is a node event: no line of a log, no part of the scheduler's message, no sum of other records."""
        return self.line_number is None and not self.from_scheduler and not self.derived


@dataclass(slots=True)
class ExtractedCase:
    """A case with what the classifier needs beyond it.

    Attributes:
        case: the case.
        items: its evidence, most telling first.
        process_exits: the exits that launchers report.
        chars: characters of all logs together.
        lines: lines of all logs together.
        cues: names of the cues found around the first item (`failure_stage`).
        stage: the training stage that is named last there, "" if none.
        short_log_lines: the lines of logs so short that they are read whole, from the first failing line on; else none.
        earlier_lines: of such logs the lines before the first failing line of theirs.
        first_line: the item of the first failing line of a log, None if it is not known.
        closing_offset: where in the log of `first_line`, behind it, a launcher or scheduler begins to end the job; None
            if that is not in the log.
        effects: the consequences and the lines of the teardown, more of them than `items` holds.
        set_aside: the lines and node events that are shown though they are no evidence, after `items` in `case`.
        landmarks: the landmarks that the scanner saw in the logs.
        only_losses: whether it shows only that processes lost one another.
    """

    case: Case
    items: list[EvidenceItem]
    process_exits: list[ProcessExit]
    chars: int
    lines: int
    cues: tuple[str, ...] = ()
    stage: str = ""
    short_log_lines: tuple[str, ...] = ()
    earlier_lines: tuple[str, ...] = ()
    first_line: EvidenceItem | None = None
    closing_offset: int | None = None
    effects: Sequence[EvidenceItem] = ()
    set_aside: Sequence[EvidenceItem] = ()
    landmarks: frozenset[str] = frozenset()
    only_losses: bool = False


def strongest(hits: Sequence[Signature]) -> Signature | None:
    """The entry that tells most of those that match a line, None without any."""
    if len(hits) < 2:  # noqa: PLR2004 - most lines have one, which needs no comparison
        return hits[0] if hits else None
    best = hits[0]
    least = STRENGTH_ORDER[best.strength], ROLE_ORDER[best.role]
    for hit in hits[1:]:  # this is asked of many events
        order = STRENGTH_ORDER[hit.strength], ROLE_ORDER[hit.role]
        if order < least:
            best, least = hit, order
    return best


def tell_only_the_end(items: Sequence[EvidenceItem]) -> bool:
    """Whether the evidence tells no more than that the job ended: its status, exit code or signal, reports of an exit.

    A log without any sign of failure still tells something by its words, if its first line is taken for the beginning.
    """
    return all(_tells_only_the_end(item) for item in items if item.set_aside is None)


def _tells_only_the_end(item: EvidenceItem) -> bool:
    if item.reports_exit and item.exception is None:
        return True
    if item.role != "context":
        return item.role == "teardown"
    if item.from_scheduler:  # such as that it was killed, which says not why
        return all(hit.role == "context" and hit.strength == "weak" for hit in item.hits)
    # The entry of a beginning does not count on a line that is none, such as a warning of any run.
    return all(hit.role == "initiating" and item.line_number is not None for hit in item.hits)


def without_numbers(text: str) -> str:
    """A text with `#` in place of each number: lines that differ in numbers alone are alike."""
    return _NUMBER.sub("#", text)


def fold_repeats(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The items without those whose words, numbers aside, the same rank printed before."""
    alike = Counter(map(_rank_and_first_character, items))
    seen: set[tuple[str, int | None]] = set()
    out: list[EvidenceItem] = []
    for item in items:
        may_repeat = alike[_rank_and_first_character(item)] > 1
        if may_repeat and (item.role != "context" or item.onset <= Onset.NEUTRAL):  # the others are few
            key = (without_numbers(item.message[:300]), item.rank)
            if key in seen:
                continue
            seen.add(key)
        out.append(item)
    return out


def _rank_and_first_character(item: EvidenceItem) -> tuple[int | None, str]:
    """What repeats have in common, and is found without a search for numbers."""
    first = item.message[:1]
    return item.rank, "#" if first.isdigit() else first


def first_failing_line(items: Sequence[EvidenceItem]) -> EvidenceItem | None:
    """The item of the first failing line, where it is a line of a log; None if it is not known.

    Args:
        items: all items, most telling first.
    """
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or first.line_number is None or first.from_scheduler:
        return None
    return first


def closing_offset(first: EvidenceItem | None, effects: Sequence[EvidenceItem]) -> int | None:
    """Where the job begins to be ended, in characters of the log of the first failing line; None where nothing tells.

    What is printed from there on is the same whatever failed: processes that are ended, containers that stop, files
    that are uploaded. It may be much longer than the failure, and its words are none of the failure.

    Args:
        first: the item of the first failing line, None if it is not known.
        effects: the consequences and the lines of the teardown.
    """
    if first is None:
        return None
    ends = (
        item.offset
        for item in effects
        if item.role == "teardown" and item.stream == first.stream and item.offset > first.offset
    )
    return min(ends, default=None)
