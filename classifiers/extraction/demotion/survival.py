"""Which trouble a run survived: it went on afterwards, tried again, or many ranks print it when they start."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.benign_lines import is_harmless_item
from classifiers.extraction.evidence_items import EvidenceItem, without_numbers
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_shapes import declares_error
from classifiers.extraction.observations.phases import COLLECTIVE_TIMEOUTS
from classifiers.extraction.observations.silence import is_wait
from classifiers.extraction.onset import AFTER_SURVIVAL, Onset
from classifiers.extraction.progress_lines import ProgressLines
from classifiers.relevance.entry_groups import peer_silent, program_errors, wait_timeouts

# Entries about services that processes of a job reach over the network.
_SERVICES: Final = ("storage.", "service.", "network.dns", "python.name-", "kubernetes.api-server")
# What a process prints when a signal asks it to end.
_TERMINATION_REQUEST: Final = re.compile(
    r"(?i)\b(?:received|caught|got|handling|on)\b[^\n]{0,20}(?:\bSIG(?:TERM|INT|USR[12])\b|\bsignal (?:15|2|10|12)\b)"
    r"|\bSIG(?:TERM|INT|USR[12])\b[^\n]{0,20}\b(?:received|caught|handler)\b"
)
# How exceptions of programs' own loops of attempts say that these are over.
_GIVES_UP: Final = re.compile(
    r"(?i)\b(?:after|in) (?:\d+|all|several|max\w*|too many) (?:\w+ )?(?:attempts?|tries|retries)\b"
    r"|\bg(?:ave|iv(?:e|es|ing)) up\b|\bunavailable\b"
    r"|\b(?:attempts|tries|retries|retry limit) (?:\w+ )?(?:exhausted|exceeded|reached|used up|failed)\b"
    r"|\bmax(?:imum)? (?:number of )?(?:attempts|tries|retries)\b"
)
_GIVE_UP_RANGE: Final = 300
_NOTHING: Final = "'NoneType'"
_SIGNAL_WORDS: Final = ("SIG", "sig", "Sig")
_CRASHED: Final = "wordings.crashed"
# Where a file holds several attempts of one job: the first line of a later one.
_NEXT_ATTEMPT: Final = re.compile(
    r"(?i)(?:\b|_)(?:restart[ _]?count[ =:]{1,3}[1-9]|(?:job|run) attempt[ #:=]{1,2}(?:[2-9]|[1-9]\d)\b"
    r"|attempt[ #:=]{1,2}(?:[2-9]|[1-9]\d)\b[^\n]{0,20}?\b(?:of|for) (?:the |this )?(?:job|run)\b"
    r"|(?:requeu|re-?start|re-?submitt|re-?launch)(?:ed|ing)\b[^\n]{0,30}\battempt[ #:=]{1,2}(?:[2-9]|[1-9]\d)\b"
    r"|attempt[ #:=]{1,2}(?:[2-9]|[1-9]\d)\b[^\n]{0,20}?\b(?:after|since) (?:the |a )?(?:requeue|re-?start|re-?launch))"
)
_ATTEMPT_WORDS: Final = ("attempt", "Attempt", "estart count", "estart_count", "RESTART_COUNT")
# What Slurm writes into the log of a job that it takes back and starts again.
_REQUEUED: Final = re.compile(
    r"\*\*\* (?:JOB|STEP) \d{1,12}(?:\.\w{1,12})? ON \S{1,200} CANCELLED AT (?P<at>\S{1,40}) DUE TO "
    r"(?:PREEMPTION|NODE FAILURE|JOB REQUEUE)\b[^\n]*"
)
_REQUEUED_WORDS: Final = " DUE TO "
# Judgement: of the first lines of a log so many, and so long ones, come again where its script begins again.
_FIRST_LINES: Final = 30
_TELLING_LENGTH: Final = 10
_FEWEST_AGAIN: Final = 2
_LINES_BEFORE_ABORT: Final = 40  # a stack is printed between the reason and the abort
_ATTEMPT_RANGE: Final = 65_536  # characters in which the first time of an attempt is looked for
_RESTARTED_AFTER_S: Final = 60.0  # clocks of nodes and logs agree to half of it (judgement)
_RANKS_WITH_SAME_WORDS: Final = 3  # as many ranks print start-up words alike (judgement)
# Characters that Python prints between two exceptions of which one led to the other.
_BETWEEN_CHAINED: Final = 120


def demote_survived(items: Sequence[EvidenceItem], progress: Sequence[ProgressLines | None]) -> None:
    """Withdraw lines that did not end the run.

    Those are lines after which the ranks went on to report progress, attempts that are made again, and start-up words
    that many ranks print alike. They become context where another line shows a beginning or an end, else they are
    ordered last.

    Args:
        items: all items; changed in place.
        progress: the progress lines by stream, None for a stream without text.
    """
    startup = _startup_messages(items)
    doubted = []
    for item in items:
        if item.role in {"initiating", "cascade"}:
            item.survived = _is_survived(item, startup, progress)
            if item.survived or item.onset is Onset.RETRIED:
                doubted.append(item)
    if not doubted:
        return
    places = {id(item) for item in doubted}
    rest = [item for item in items if id(item) not in places and not item.from_scheduler]
    cause = _retried_cause(doubted, rest)
    if cause is not None:
        cause.onset = Onset.STRONG_ENTRY
        doubted = [item for item in doubted if item is not cause]
        rest.append(cause)
    explained = any(
        item.role in {"initiating", "cascade"} or (item.reports_exit and item.role == "teardown") for item in rest
    )
    for item in doubted:
        if explained or item.role == "cascade":
            item.role, item.onset = "context", Onset.DEMOTED
        else:
            item.onset = AFTER_SURVIVAL.get(item.onset, item.onset)


def _retried_cause(doubted: Sequence[EvidenceItem], rest: Sequence[EvidenceItem]) -> EvidenceItem | None:
    """The first trouble that was tried again until the processes gave up; None without one.

    Where the run ends in lines that only say that a process waited or lost another one, such trouble of the platform is
    what they waited for, unless the run went on after it. Where it ends in an exception that only says how often
    something was tried, the error of the first attempt is what failed. Where it ends because a value was nothing, a
    service that refused an answer did not give it.
    """
    beginnings = [item for item in rest if item.role == "initiating"]
    tried = [item for item in doubted if item.onset is Onset.RETRIED and not item.survived]
    if beginnings and all(map(_gives_up, beginnings)):
        same = {item.stream for item in beginnings}
        return next((item for item in tried if item.stream in same and _is_known(item)), None)
    if len(beginnings) == 1 and _NOTHING in beginnings[0].message:
        return next((item for item in tried if item.stream == beginnings[0].stream and _is_of_platform(item)), None)
    ends = beginnings or [item for item in rest if item.role == "cascade"]
    if not ends or any(not is_wait(item) for item in ends):
        return None
    if not beginnings and any(hit.id in COLLECTIVE_TIMEOUTS for item in ends for hit in item.hits):
        return None  # they had met before
    return next((item for item in tried if _is_of_platform(item)), None)


def _gives_up(item: EvidenceItem) -> bool:
    """Whether an exception that no catalogue entry knows says that attempts are over."""
    is_unknown = item.exception is not None and not item.hits
    return is_unknown and _GIVES_UP.search(item.message, 0, _GIVE_UP_RANGE) is not None


def _is_known(item: EvidenceItem) -> bool:
    return any(hit.role == "initiating" and hit.strength != "weak" for hit in item.hits)


def _is_of_platform(item: EvidenceItem) -> bool:
    """Whether a line is about a service of the platform."""
    return any(hit.role == "initiating" and hit.id.startswith(_SERVICES) for hit in item.hits)


def _startup_messages(items: Sequence[EvidenceItem]) -> frozenset[str]:
    """Messages with general words of failure that many ranks print alike."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for item in items:
        if item.role == "initiating" and item.rank is not None and item.onset >= Onset.ERROR_WORDS:
            ranks[_masked(item)].add(item.rank)
    return frozenset(message for message, found in ranks.items() if len(found) >= _RANKS_WITH_SAME_WORDS)


def _masked(item: EvidenceItem) -> str:
    return without_numbers(item.message[:120])


def _is_survived(item: EvidenceItem, startup: frozenset[str], progress: Sequence[ProgressLines | None]) -> bool:
    """Whether the run went on after a line of a log."""
    own = progress[item.stream] if item.stream < len(progress) and not item.from_scheduler else None
    if own is None:
        return False
    if own.continues_after(item.offset, process_ended=item.ends_process):
        return True
    if item.ends_process:
        return False
    is_weak = item.role == "initiating" and item.onset >= Onset.ERROR_WORDS and item.rank is not None
    return is_weak and _masked(item) in startup


def demote_unanswered(items: Sequence[EvidenceItem]) -> None:
    """Let ranks that got no answer over the network be a consequence where another rank died of its own program.

    Args:
        items: all items; changed in place.
    """
    died = {
        item.rank
        for item in items
        if item.role == "initiating"
        and item.rank is not None
        and item.ends_process
        and not item.survived
        and any(hit.id in program_errors() for hit in item.hits)
    }
    if not died:
        return
    for item in items:
        if (
            item.role == "initiating"
            and item.line_number is not None
            and item.rank not in died
            and any(hit.id in peer_silent() for hit in item.hits)
        ):
            item.role, item.onset = "cascade", Onset.NEUTRAL


def promote_reason_of_abort(items: Sequence[EvidenceItem]) -> bool:
    """Promote what a process said just before it aborted itself: the abort is the consequence.

    Args:
        items: all items, sorted; changed in place.

    Returns:
        Whether a line was promoted.
    """
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or not _is_abort(first) or first.from_scheduler:
        return False
    last_errors = [
        item
        for item in items
        if item.stream == first.stream
        and item.line_number is not None
        and 0 < (first.line_number or 0) - item.line_number <= _LINES_BEFORE_ABORT
        and item.rank in {None, first.rank}
        and not item.survived
        and (item.role == "initiating" or declares_error(item.message) or item.message.lstrip().startswith("what():"))
        and item.onset is not Onset.RETRIED
        and not is_harmless_item(item)
    ]
    if not last_errors:
        return False
    reason = min(last_errors, key=lambda item: item.offset)
    reason.role, reason.onset = "initiating", min(first.onset, Onset.TRACEBACK)
    first.role = "cascade"
    if first.time is not None:
        reason.time = min(first.time, reason.time if reason.time is not None else first.time)
    return True


# Families of entries for lines of a scheduler or a kernel, which say why a process ended when it has ended.
_REPORTS_END: Final = frozenset({"slurm", "kernel"})


def demote_after_loss(items: Sequence[EvidenceItem], several_ranks: Sequence[bool]) -> None:
    """Let an error of a program be a consequence where its process was asked to end, or had lost the others, before.

    What a process prints after that, as it saves or cleans up, is not what the failure began with.

    Args:
        items: all items; changed in place.
        several_ranks: whether several ranks print to a log, by stream.
    """
    ends_requested: dict[tuple[int, int | None], int] = {}
    lost: dict[tuple[int, int | None], int] = {}
    for item in items:
        if _is_own_line(item, several_ranks):
            key = _process_of(item, several_ranks)
            if _is_termination_request(item) or _has_lost_others(item):
                ends_requested[key] = min(ends_requested.get(key, item.offset), item.offset)
            if _reports_loss(item):
                lost[key] = min(lost.get(key, item.offset), item.offset)
    is_late = False
    for item in items:
        if item.role != "initiating" or not _is_own_line(item, several_ranks) or not _is_of_program(item):
            continue
        ends = lost if _is_abort(item) else ends_requested
        if item.start_offset > ends.get(_process_of(item, several_ranks), item.start_offset):
            item.role, item.onset, item.is_late = "teardown", Onset.NEUTRAL, True
            is_late = True
    if is_late and not any(item.role == "initiating" and item.onset < Onset.ERROR_WORDS for item in items):
        first = next(
            (item for item in items if _is_termination_request(item) and _is_own_line(item, several_ranks)), None
        )
        if first is not None:  # no line shows why
            first.role, first.onset = "initiating", Onset.PROCESS_END


def demote_cancellations(items: Sequence[EvidenceItem]) -> None:
    """Withdraw the cancelling of a task where the time limit that cancelled it is reported.

    CPython's `asyncio.timeout` raises a TimeoutError from the CancelledError of the task: the first of the two
    exceptions only says how the limit was applied (asyncio/timeouts.py).

    Args:
        items: all items; changed in place.
    """
    limits = [item for item in items if item.role == "initiating" and _class_of(item) == "TimeoutError"]
    for item in items:
        if item.role == "initiating" and _class_of(item) == "CancelledError":
            gaps = (one.start_offset - item.offset for one in limits if one.stream == item.stream)
            if any(0 < gap <= len(item.text) + _BETWEEN_CHAINED for gap in gaps):
                item.role, item.onset = "context", Onset.DEMOTED


def _class_of(item: EvidenceItem) -> str:
    return (item.exception or "").rpartition(".")[2]


def _process_of(item: EvidenceItem, several_ranks: Sequence[bool]) -> tuple[int, int | None]:
    """The process that printed a line of a log: the one of the log, or one of its ranks."""
    return item.stream, item.rank if several_ranks[item.stream] else None


def _is_own_line(item: EvidenceItem, several_ranks: Sequence[bool]) -> bool:
    """Whether a line of a log is of one process, so that the lines before it are of the same one."""
    if item.line_number is None or item.from_scheduler or item.stream >= len(several_ranks):
        return False
    return not several_ranks[item.stream] or (item.rank is not None and not item.rank_from_stream)


def _is_termination_request(item: EvidenceItem) -> bool:
    words = item.message[:200]
    return any(part in words for part in _SIGNAL_WORDS) and _TERMINATION_REQUEST.search(words) is not None


def _has_lost_others(item: EvidenceItem) -> bool:
    """Whether a process gave up waiting for the others, after which it only ends."""
    return item.role == "cascade" and not item.survived and any(hit.id in wait_timeouts() for hit in item.hits)


def _reports_loss(item: EvidenceItem) -> bool:
    """Whether a process says that others are gone, or that it waited for them in vain."""
    return item.role == "cascade" and not item.survived and is_wait(item)


def _is_abort(item: EvidenceItem) -> bool:
    """Whether a line only says that a process aborted itself, which it does for a reason that it printed before."""
    return "Aborted" in item.message and any(hit.id == _CRASHED for hit in item.hits)


def _is_of_program(item: EvidenceItem) -> bool:
    """Whether a line is no report of a device, a node or a service: these may be late reports of what was first."""
    found = [hit for hit in item.hits if hit.role == "initiating"]
    if any(hit.family in _REPORTS_END for hit in found):
        return False
    of_hardware = any(cause.startswith("HW.") for hit in found for cause in hit.causes)
    return item.onset < Onset.LIKELY_CONSEQUENCE and not of_hardware and not _is_of_platform(item)


def demote_earlier_attempts(items: Sequence[EvidenceItem], texts: Sequence[str]) -> None:
    """Withdraw what ended an earlier attempt of a job whose log goes on with the next one, if that one shows its end.

    Args:
        items: all items; changed in place.
        texts: the logs, by stream; "" for one without `ATTEMPT_MARKS`.
    """
    begins = [_last_attempt(text) for text in texts]
    for stream, begin in enumerate(begins):
        of_log = [item for item in items if begin and item.stream == stream and not item.from_scheduler]
        own = [item for item in of_log if item.role in {"initiating", "cascade"}]
        if not any(item.offset >= begin for item in own):
            continue
        for item in of_log:
            if item.offset < begin and item.role != "context":
                item.role, item.onset, item.survived = "context", Onset.DEMOTED, True


def _last_attempt(text: str) -> int:
    """Where the last attempt begins in a log of several, else 0."""
    begin = _begin_after_requeue(text)[0]
    if not any(word in text for word in _ATTEMPT_WORDS):
        return begin
    last = max((found.start() for found in _NEXT_ATTEMPT.finditer(text)), default=0)
    return max(begin, text.rfind("\n", 0, last) + 1)


def last_attempt_since(text: str) -> float | None:
    """When the last attempt began in a log of several, in seconds into the year; None if it holds one or is not timed.

    It began after its predecessor was ended, and before its first line with a time.
    """
    begin, ended = _begin_after_requeue(text)
    if not begin and _REQUEUED_WORDS in text and any(word in text for word in _ATTEMPT_WORDS):
        begin = _last_attempt(text)
        before = [found["at"] for found in _REQUEUED.finditer(text, 0, begin)]
        ended = time_of(before[-1]) if before else None
    if not begin or ended is None:
        return None
    timed = (time_of(line) for line in text[begin : begin + _ATTEMPT_RANGE].split("\n"))
    return next((time for time in timed if time is not None and time > ended), ended + _RESTARTED_AFTER_S)


def _begin_after_requeue(text: str) -> tuple[int, float | None]:
    """Where the log goes on after the scheduler took the job back, and when that was; 0 and None without.

    The batch script begins again: it prints the first lines of the log again.
    """
    if _REQUEUED_WORDS not in text:
        return 0, None
    ends = list(_REQUEUED.finditer(text))
    if not ends:
        return 0, None
    first = {line for line in text[: ends[0].start()].split("\n")[:_FIRST_LINES] if len(line) >= _TELLING_LENGTH}
    at, again = ends[-1].end() + 1, []
    for line in text[at:].split("\n"):
        if line in first:
            again.append(at)
        at += len(line) + 1
    return (again[0], time_of(ends[-1]["at"])) if len(again) >= _FEWEST_AGAIN else (0, None)
