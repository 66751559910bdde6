"""The order of a case's evidence items, and the choice of a beginning."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from classifiers.extraction.benign_lines import is_harmless_item, is_variable
from classifiers.extraction.evidence_items import ROLE_ORDER, EvidenceItem
from classifiers.extraction.line_roles import announces_retry, is_present
from classifiers.extraction.line_shapes import is_crash, relays_timeout
from classifiers.extraction.observations.phases import MISSED_HEARTBEATS
from classifiers.extraction.onset import Onset
from classifiers.extraction.sampled_lines import lines_after_warnings, only_line, tells_nothing
from classifiers.relevance.entry_groups import ended_by_request
from classifiers.taxonomy import Role

_END_WORDS: Final = frozenset({"sigterm", "preempt", "reclaim", "terminat", "evict", "killed", "drain", "maintenance"})
# A file, a path or an address that a line names.
_OBJECT: Final = re.compile(r"[\w@%+=~.-]{0,80}[\w-]{3}\.[A-Za-z]\w{1,11}\b|/[\w.-]{2,60}(?=[/'\"\s:,)]|$)")
_CODE: Final = (".py", ".cpp", ".cc", ".h", ".cu", ".so")
_WEAK_WORDS: Final = frozenset(
    {"warning", "retry", "require", "expected", "unknown", "slow", "signal", ": line ", "missing"}
)
# The last word on attempts, which does not say why they failed.
_GAVE_UP: Final = re.compile(
    r"(?i)\b(?:gave|giving|give) up\b|\b(?:after|all) (?:\d{1,3} |\w+ )?(?:failed )?(?:attempts|retries|tries)\b"
    r"|\b(?:retries|attempts) (?:were |are )?(?:exhausted|exceeded|failed)\b"
    r"|\b(?:max(?:imum)?|too many) (?:number of )?(?:retries|attempts)\b"
)
_TRY: Final = re.compile(r"(?i)\btry #?\d{1,3} ?(?:of|/) ?\d")
# All of these are a judgement.
_OBJECT_RANGE: Final = 500
_MOST_ITEMS: Final = 24
_MOST_OF_ROLE: Final[dict[Role, int]] = {"initiating": 4, "cascade": 8, "teardown": 4, "context": 10}
_MOST_BEGINNINGS: Final = 4
_FIRST_RANKS: Final = 3  # of the ranks that complain at once, so many count as first
_AT_ONCE_S: Final = 2.0
_NO_TIME: Final = 1e12  # sorts last
# Of a beginning whose own words count against it: log odds by which another line's words have to lead (held-out kinds
# among neutral lines: with these, few first lines are lost for the many that are found).
_LEAD_OVER_SIGN: Final = 3.0
_LEAD: Final = {
    Onset.ERROR_WORDS: 1.0,
    Onset.STRONG_ENTRY: _LEAD_OVER_SIGN,
    Onset.TRACEBACK: _LEAD_OVER_SIGN,
    Onset.SHELL_ERROR: _LEAD_OVER_SIGN,
}
_CLEAR_SIGNS: Final = frozenset({Onset.SURVIVED_DECISIVE_ENTRY, Onset.SURVIVED_ERROR})  # although survived

LogOdds: TypeAlias = Callable[[str], float | None]


def promote_last_line(items: Sequence[EvidenceItem], last: EvidenceItem | None) -> None:
    """Choose the last line of a log, where nothing but attempts that were made again shows a beginning.

    Args:
        items: all items; changed in place.
        last: the item of the last line of the only log, None if that tells nothing.
    """
    beginnings = [item for item in items if item.role == "initiating" and not item.from_scheduler]
    if last is None or last.role != "context" or not beginnings:
        return
    if all(item.onset is Onset.SURVIVED_RETRY and item.offset < last.offset for item in beginnings):
        for item in beginnings:
            item.role, item.onset = "context", Onset.DEMOTED
        last.role, last.onset = "initiating", Onset.ONLY_LINE


def promote_first_sign(items: Sequence[EvidenceItem]) -> None:
    """Choose a beginning where no line shows one: the first consequence, a launcher's report, or an only line."""
    own = [item for item in items if not item.from_scheduler and item.line_number is not None]
    promoted = False
    if not any(
        item.role == "initiating" and item.onset < Onset.LIKELY_CONSEQUENCE and not item.from_scheduler
        for item in items
    ):
        promoted = _promote_consequences([item for item in own if item.role == "cascade"])
        report = next((item for item in own if item.reports_exit and item.role == "teardown"), None)
        if report is not None:
            # A process that was killed prints nothing: the report of its end comes before what others say of it.
            killed = report.reports_kill and not _is_own_kill(report, own)
            report.role, report.onset = "initiating", Onset.PROCESS_END if killed else Onset.LAUNCHER_REPORT
            promoted = True
    only = None if promoted else only_line(items)
    if only is not None:
        only.role, only.onset = "initiating", Onset.ONLY_LINE


def _is_own_kill(report: EvidenceItem, own: Sequence[EvidenceItem]) -> bool:
    """Whether a launcher that reports a killed process said before that it got no heartbeat of it: it killed it."""
    return any(
        item.stream == report.stream
        and item.offset < report.offset
        and any(hit.id in MISSED_HEARTBEATS for hit in item.hits)
        for item in own
    )


def promote_telling_line(items: Sequence[EvidenceItem], log_odds: LogOdds) -> None:
    """Choose the line whose words first lines of failures have, where the signs of the others are weaker.

    That is so where no line shows a failure by a known sign: attempts that are made again, the scheduler's weak words
    and an only line give way. A beginning whose own words count against it is demoted for a line that leads clearly.

    Args:
        items: all items; changed in place.
        log_odds: the log odds that a failure began with a line, None for a line without words.
    """
    while True:
        leading = min((item for item in items if item.role == "initiating"), key=sort_key, default=None)
        least = 0.0 if leading is None else _least_odds(leading, log_odds)
        others = [item for item in items if leading is None or not _is_explained(item, leading)]
        telling = None if least is None else _most_telling(others, least, log_odds)
        if telling is None:
            return
        if leading is not None and leading.line_number is not None and not leading.from_scheduler:
            leading.role, leading.onset = "context", Onset.DEMOTED
        telling.role, telling.onset = "initiating", min(telling.onset, Onset.TELLING_WORDS)


def _least_odds(leading: EvidenceItem, log_odds: LogOdds) -> float | None:
    """The log odds that a line needs to lead instead of a beginning, None where none can."""
    if leading.onset > Onset.TELLING_WORDS:
        return None if leading.onset in _CLEAR_SIGNS else max(0.0, log_odds(leading.message) or 0.0)
    lead = _LEAD.get(leading.onset)
    if lead is None or leading.line_number is None or leading.from_scheduler or is_crash(leading.message.lstrip()):
        return None
    own = log_odds(leading.message) or 0.0
    return max(0.0, own + lead) if own < 0.0 else None


def _most_telling(items: Sequence[EvidenceItem], least: float, log_odds: LogOdds) -> EvidenceItem | None:
    """The line of a log with the most telling words, None if none has more than the least log odds."""
    best = None
    after_warnings = lines_after_warnings(items)
    for item in items:
        if item.role in {"initiating", "context"} and item.line_number is not None and not item.from_scheduler:
            odds = log_odds(item.message)
            if odds is None or odds <= least or _went_on(item):
                continue
            is_plain = item.role == "context" and tells_nothing(item, after_warnings)
            if not is_plain and not is_harmless_item(item) and not is_variable(item.message):
                best, least = item, odds
    return best


def _is_explained(item: EvidenceItem, leading: EvidenceItem) -> bool:
    """Whether an entry of a line says nothing of its own where the entry of the leading line is in the case."""
    found = frozenset(hit.id for hit in leading.hits if hit.role != "context")
    return any(hit.role == "context" and any(is_present(name, found) for name in hit.unless) for hit in item.hits)


def _went_on(item: EvidenceItem) -> bool:
    """Whether the run went on after a line, or tried again and so got over it."""
    return item.survived or item.onset is Onset.DEMOTED


def _promote_consequences(consequences: Sequence[EvidenceItem]) -> bool:
    """Promote the first consequence, and what other ranks report at once or of missing ranks; whether there is one."""
    consequences = [one for one in consequences if not relays_timeout(one.message, _OBJECT_RANGE)] or consequences
    if not consequences:
        return False
    by_time = sorted(consequences, key=_time_and_position)
    first = by_time[0]
    latest = _time_and_position(first)[0] + _AT_ONCE_S
    _promote(first)
    ranks = {first.rank}
    at_once = next(one for one in consequences if _time_and_position(one)[0] <= latest)
    for item in [at_once, *by_time]:
        if item.rank in ranks or (item.rank is None and not item.missing_ranks):
            continue
        if item.missing_ranks or (len(ranks) < _FIRST_RANKS and _time_and_position(item)[0] <= latest):
            _promote(item)
            ranks.add(item.rank)
    return True


def _time_and_position(item: EvidenceItem) -> tuple[float, int]:
    return item.time if item.time is not None else _NO_TIME, item.position


def _promote(item: EvidenceItem) -> None:
    item.role, item.onset = "initiating", Onset.FIRST_CONSEQUENCE


def promote_suspect_line(items: Sequence[EvidenceItem], rank: int | None) -> None:
    """Promote the suspect rank's first line, or a launcher's report of its exit, where no line of it is a beginning."""
    if rank is None or any(item.role == "initiating" and item.rank == rank for item in items):
        return
    if any(
        item.role == "initiating"
        and item.onset < Onset.SCHEDULER_STRONG_ENTRY
        and item.rank is None
        and item.line_number
        for item in items
    ):
        return
    own = [
        item
        for item in items
        if item.rank == rank and not item.from_scheduler and not item.is_late and _shows_end(item)
    ]
    if own:
        _promote(min(own, key=lambda item: (item.stream, item.offset)))
        return
    report = next((item for item in items if rank in item.exited_ranks and item.role != "initiating"), None)
    if report is not None:
        _promote(report)


def _shows_end(item: EvidenceItem) -> bool:
    if item.role in {"cascade", "teardown"}:
        return True
    return item.onset < Onset.DEMOTED and not item.error_words.isdisjoint(_END_WORDS)


def sort_key(item: EvidenceItem) -> tuple[int, int, float, int]:
    """The order of items: by role, onset, time, and position."""
    return ROLE_ORDER[item.role], item.onset.precedence, *_time_and_position(item)


def prefer_rank(rank: int) -> Callable[[EvidenceItem], tuple[int, int, bool, float, int]]:
    """A sort key like `sort_key` by which, of lines with the same onset, those of other ranks come last."""

    def key(item: EvidenceItem) -> tuple[int, int, bool, float, int]:
        role, onset, time, position = sort_key(item)
        other = item.role == "initiating" and item.rank is not None and item.rank != rank
        return role, onset, other, time, position

    return key


def prefer_logs_to_scheduler(items: Sequence[EvidenceItem]) -> bool:
    """Promote the first line by which a log shows the end, where only the scheduler's message shows a beginning.

    Returns:
        Whether a line was promoted.
    """
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or not first.from_scheduler or _says_who_ended_it(first):
        return False
    shown = [item for item in items if item.line_number and not item.from_scheduler and _is_sign_of_end(item)]
    if not shown:
        return False
    # What a launcher says of a process that ended by itself comes after what the processes say.
    line = min(shown, key=lambda item: (item.reports_exit and not item.reports_kill, _time_and_position(item)))
    line.role, line.onset = "initiating", min(first.onset, Onset.SCHEDULER_STRONG_ENTRY)
    line.time = first.time = None if first.time is None else line.time
    return True


def _says_who_ended_it(item: EvidenceItem) -> bool:
    """Whether a line of the scheduler's log says who or which policy ended the job: what logs show follows from it."""
    return item.line_number is not None and any(hit.id in ended_by_request() for hit in item.hits)


def _is_sign_of_end(item: EvidenceItem) -> bool:
    """Whether a line of a log reports a consequence, or a signal or notice by which a scheduler ends a job."""
    if item.is_late:
        return False
    if item.role in {"cascade", "teardown"} or item.onset in {Onset.LIKELY_CONSEQUENCE, Onset.FIRST_CONSEQUENCE}:
        return True
    return item.onset < Onset.DEMOTED and not item.error_words.isdisjoint(_END_WORDS)


def promote_first_mention(items: Sequence[EvidenceItem]) -> bool:
    """Promote the first complaint about the file or address that the first beginning names.

    A retry's first error comes before its last, and the warning that a file could not be written before the error that
    it is not there.

    Args:
        items: all items, sorted; changed in place.

    Returns:
        Whether a line was promoted.
    """
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or first.line_number is None or first.from_scheduler or first.onset >= Onset.PROCESS_END:
        return False
    complaints = [
        item
        for item in items
        if item.role == "context"
        and item.stream == first.stream
        and item.offset < min(first.offset, first.start_offset)
        and item.error_words - _WEAK_WORDS
    ]
    if not complaints:  # few cases have any: names are searched only now
        return False
    names = {name for name in _OBJECT.findall(first.message[:_OBJECT_RANGE]) if not name.endswith(_CODE)}
    if first.onset is Onset.DECISIVE_ENTRY:
        names = {name for name in names if name.startswith("/")}  # what a logger is called looks like a file
    entries = {hit.id for hit in first.hits if hit.role == "initiating" and hit.strength != "weak"}
    gave_up = not entries and _GAVE_UP.search(first.message, 0, _OBJECT_RANGE) is not None
    earlier = [
        item
        for item in complaints
        if not is_harmless_item(item)
        and not _says_less(item, first)
        and (
            not names.isdisjoint(_OBJECT.findall(item.message[:_OBJECT_RANGE]))
            or (not item.survived and _is_attempt(item, entries))
            or (gave_up and not item.survived and item.rank in {None, first.rank} and _is_attempt(item, None))
        )
    ]
    if not earlier:
        return False
    found = min(earlier, key=lambda item: item.offset)
    found.role, found.onset = "initiating", min(first.onset, Onset.TRACEBACK)
    if first.time is not None:
        found.time = min(first.time, found.time if found.time is not None else first.time)
    return True


def _is_attempt(item: EvidenceItem, entries: Collection[str] | None) -> bool:
    """Whether a line is an attempt that failed in one of some known ways; None: in any."""
    known = {hit.id for hit in item.hits if entries is not None or hit.role == "initiating"}
    is_known = bool(known) if entries is None else not known.isdisjoint(entries)
    return is_known and (announces_retry(item.message) or _TRY.search(item.message, 0, _OBJECT_RANGE) is not None)


def _says_less(item: EvidenceItem, first: EvidenceItem) -> bool:
    """Whether a line only has general words for trouble that another line names."""
    hits = [hit for hit in item.hits if hit.role == "initiating"]
    named = {hit.id for hit in first.hits if hit.role == "initiating" and hit.strength != "weak"}
    return bool(hits and named) and all(hit.strength == "weak" and hit.id not in named for hit in hits)


def complete_times(items: Sequence[EvidenceItem]) -> None:
    """Give a line without a time that of the next line of its log that has one."""
    following: dict[int, float] = {}
    for item in reversed(items):
        if item.line_number is None or item.from_scheduler:
            continue
        if item.time is not None:
            following[item.stream] = item.time
        elif item.stream in following:
            item.time = following[item.stream]


def name_few_beginnings(items: Sequence[EvidenceItem]) -> None:
    """Leave the first beginning and at most three more that stand beside it; the others become consequences.

    Args:
        items: all items, sorted; changed in place.
    """
    beginnings = [item for item in items if item.role == "initiating"]
    if not beginnings:
        return
    first = beginnings[0]
    is_own = first.onset < Onset.LIKELY_CONSEQUENCE
    kept = 1
    for item in beginnings[1:]:
        beside = item.onset <= Onset.WEAK_ENTRY if is_own else item.onset <= first.onset
        if beside and kept < _MOST_BEGINNINGS and not item.reports_exit:
            kept += 1
        else:
            item.role = "cascade" if item.hits or item.exception else "context"


def limit(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The first items of each role."""
    count: dict[Role, int] = {}
    out = []
    for item in items:
        count[item.role] = count.get(item.role, 0) + 1
        if count[item.role] <= _MOST_OF_ROLE[item.role]:
            out.append(item)
    return out[:_MOST_ITEMS]
