"""The question of time: whether a node event lies between the last progress of a job and its failure."""

import re
from typing import Final

from classifiers.relevance.event_candidates import Candidate, Fit, JobEvidence, MatchedEvent, Reason
from classifiers.relevance.event_places import CLOCK_SKEW_S, is_of_absent_pod
from classifiers.relevance.event_rules import shown_until_repair

# Judgement: where all events are later than the job's end by more than this, clocks are set otherwise.
CLOCK_BROKEN_S: Final = 6 * 3600.0
# Judgement: how long a process's output may be buffered, and how late a controller reports a lost node.
BUFFERED_S: Final = 90.0
_REPORTED_LATE_S: Final = 900.0
# What a node itself reports by its kernel or its management controller is reported at once.
_AT_ONCE_SOURCES: Final = frozenset({"kernel", "ipmi", "redfish", "bmc", "dcgm", "xid"})
# The exporter's gauge keeps the number of the last Xid: it was before the time of the reading.
_READ_LATER_SOURCES: Final = frozenset({"dcgm-exporter"})
# Judgement: how long after an event without a rule its failure shows.
_DEFAULT_WITHIN_S: Final = 1_800
# Judgement: how long a run goes on after what stalls it, with the data that it has read ahead.
READ_AHEAD_S: Final = 300.0
# Judgement: a run shows no more progress so soon after what stopped it, buffered output and late reports included.
_STOPPED_WITHIN_S: Final = 600.0
# Judgement: a job whose processes wait for each other ends at the latest so long after the failure.
_LONGEST_WAIT_S: Final = 1_800.0

# Linux, kernel/hung_task.c and kernel/watchdog.c: reported once it has lasted so long.
_STOOD_STILL: Final = re.compile(r"\b(?:blocked for more than|stuck for) (\d{1,5}) ?s")
# Judgement: a node under suspicion is tested so soon after its job.
_TESTED_WITHIN_S: Final = 86_400.0


def comes_before(one: MatchedEvent, other: MatchedEvent) -> bool:
    """Whether an event comes before another, by time, else by the order in which they were given."""
    if one.time is not None and other.time is not None and one.time != other.time:
        return one.time < other.time
    return one.index < other.index


def blocked_for(text: str) -> float:
    """For how many seconds something stood still when a kernel reported it; 0 where a text says nothing of that."""
    if "blocked for" not in text and "stuck for" not in text:
        return 0.0
    found = _STOOD_STILL.search(text)
    return float(found[1]) if found is not None else 0.0


def exclusion_by_time(one: Candidate, job: JobEvidence) -> Reason | None:
    """The reason against an event that does not lie between the last progress and the failure."""
    time, failed = one.event.time, job.failed_or_ended
    if time is None or failed is None:
        return None
    traits = one.traits
    effects = traits.effects
    late = CLOCK_SKEW_S if job.own_entries else _latest_report(one)
    is_later = job.failed is not None and time > job.failed + late
    if is_later or _is_after_end(one, time, job) or _is_after_stop(one, time, job):
        return None if _is_found_later(one, time, job) else Reason.LATER
    if "changes" in effects:
        return Reason.LONG_BEFORE if traits.within_s and time < failed - traits.within_s else None
    # Where it slowed the job down, the steps that took longer lie between it and the end.
    if traits.degrades_on or is_shown_until_repair(one, job) or one.fit is Fit.SLOWER:
        return None
    within = traits.within_s or _DEFAULT_WITHIN_S
    goes_on_for = BUFFERED_S if effects & {"ends", "follows"} else READ_AHEAD_S if "stalls" in effects else within
    last = job.last_progress
    when_stopped = last is not None and last - goes_on_for <= time <= _latest_progress(last, job) + _STOPPED_WITHIN_S
    waited = _LONGEST_WAIT_S if job.failed is None and (job.waits or job.own_entries) else CLOCK_SKEW_S
    # A service of all jobs that is away when a job starts is what the job meets first.
    lasts = traits.lasts and one.fits
    is_before_start = job.started is not None and time < job.started - CLOCK_SKEW_S and not lasts
    began = failed if job.stalled is None else min(failed, job.stalled)
    if is_before_start or (time < began - within - waited and not when_stopped):
        return Reason.LONG_BEFORE
    goes_on = last is None or time >= last - goes_on_for or (traits.slows and one.fit > Fit.WAITS)
    return None if goes_on or is_of_absent_pod(one, job) else Reason.SURVIVED


def _is_found_later(one: Candidate, time: float, job: JobEvidence) -> bool:
    """Whether a test, or a reading, soon after the job found what the job's own lines show."""
    end = job.ended if job.ended is not None else job.failed
    is_state = one.traits.found_later or one.event.source in _READ_LATER_SOURCES
    return is_state and one.fits and end is not None and time <= end + _TESTED_WITHIN_S


def _is_after_stop(one: Candidate, time: float, job: JobEvidence) -> bool:
    """Whether the run had stopped before an event that only waiting processes support."""
    last = job.last_progress
    if last is None or time <= max(last + _STOPPED_WITHIN_S, (job.stalled or last) + CLOCK_SKEW_S):
        return False
    if one.fit is not Fit.WAITS:
        return False
    return job.stalled is not None or time > _latest_progress(last, job) + _STOPPED_WITHIN_S


def _latest_progress(last: float, job: JobEvidence) -> float:
    """When the very last progress was: where lines of progress are far apart, long after about the last one."""
    latest = job.latest_progress()
    return last if latest is None else max(last, latest)


def _is_after_end(one: Candidate, time: float, job: JobEvidence) -> bool:
    """Whether an event is so much later than the job's end that it is none of its own."""
    if job.ended is None or time <= job.ended:
        return False
    if time > job.ended + _latest_report(one):
        return True
    return "node" not in one.traits.objects and one.fit is Fit.NONE  # nothing but its time could support it


def _latest_report(one: Candidate) -> float:
    """How long after the end of a job an event of that end is reported at the latest, in seconds."""
    is_late = "node" in one.traits.objects and one.event.source not in _AT_ONCE_SOURCES
    return _REPORTED_LATE_S if is_late else CLOCK_SKEW_S + BUFFERED_S


def is_shown_until_repair(one: Candidate, job: JobEvidence) -> bool:
    """Whether the job shows what such an event makes later jobs show until the object is repaired.

    Where no process reports a failure, what the scheduler says of it counts.
    """
    shown = shown_until_repair(one.event.entries)
    lines = job.own_entries or [job.other_entries]
    return bool(shown) and any(not shown.isdisjoint(entries) for entries in lines)
