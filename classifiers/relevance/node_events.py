"""Which node events may have begun a failure. Pure: the same observations give the same answers.

A node's message is a suspect, not a cause: nodes always emit corrected errors, flapping ports that nobody uses, and
yesterday's repairs. So each event is asked questions. One that speaks against it sets it aside, with the reason that a
page shows. What is left is used where the log shows something that such an event explains (event_rules.toml), where the
scheduler confirms it, or where the log shows no failure of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from classifiers.relevance.event_objects import EventObjects, read_objects
from classifiers.relevance.event_rules import EventRule, load
from classifiers.relevance.records import short_name

# Judgement: clocks of nodes and logs agree to this, in seconds.
CLOCK_SKEW_S: Final = 30.0
# Judgement: where all events are later than the job's end by more than this, clocks are set otherwise.
CLOCK_BROKEN_S: Final = 6 * 3600.0
# Judgement: how long a process's output may be buffered, and how late a controller reports a lost node.
_BUFFERED_S: Final = 90.0
_REPORTED_LATE_S: Final = 900.0
# Judgement: how long after an event without a rule its failure shows.
_DEFAULT_WITHIN_S: Final = 1_800
# What ends or stalls a job without any line in its log.
_SEEN_BY_NODE_ONLY: Final = frozenset({"gpu", "node", "port", "filesystem"})
# Judgement: a job whose processes wait for each other ends at the latest so long after the failure.
_LONGEST_WAIT_S: Final = 2_400.0


class Reason(StrEnum):
    """Why an event is not used as evidence."""

    CORRECTED = "it was corrected or harmless by its own words"
    RECOVERED = "it recovered before the failure"
    OTHER_NODE = "it is of a node that the job did not use"
    OTHER_DEVICE = "it is of a device that the job does not use"
    OTHER_PROCESS = "it is of a process of another job or of the node itself"
    SURVIVED = "the job made progress afterwards"
    LATER = "it came after the failure"
    LONG_BEFORE = "it came long before the failure"
    NOT_SHOWN = "the log shows a failure that it does not explain"
    NO_TRACE = "nothing in the log or from the scheduler fits it"


class Support(StrEnum):
    """What speaks for an event that is used."""

    LOG = "the log shows what such an event causes"
    SCHEDULER = "the scheduler confirms it"
    SECOND_SOURCE = "a second source reports it"
    ALONE = "the log shows no other beginning"


@dataclass(frozen=True, slots=True)
class EventSeen:
    """A node event that the signature catalogue knows.

    Attributes:
        index: its place among the events of the case.
        text: its text.
        node: its node, None if unknown.
        source: who reports it, None if unknown.
        time: seconds into the year by the clock of the log, None if unknown.
        entries: ids of the entries that match it as a beginning.
    """

    index: int
    text: str
    node: str | None
    source: str | None
    time: float | None
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobSeen:
    """What log and scheduler show of the job.

    Attributes:
        nodes: short names of its nodes.
        job_id: its id, None if unknown.
        status: how it ended.
        own_entries: by line on which its processes report a failure of their own, the ids of its catalogue entries.
        other_entries: ids of the entries on its other lines of failure, as lost peers, and of the scheduler's message.
        started: when it started, in seconds into the year; None if unknown. So the further times.
        last_progress: when its last progress was.
        failed: when its first line of failure was.
        ended: when it ended.
        mentions: whether a text is in its logs.
        ports: names of the network ports that its logs say it uses.
        gpus: indexes of the GPUs that its logs say it uses.
    """

    nodes: frozenset[str]
    job_id: str | None
    status: str
    own_entries: Sequence[frozenset[str]]
    other_entries: frozenset[str]
    started: float | None
    last_progress: float | None
    failed: float | None
    ended: float | None
    mentions: Callable[[str], bool]
    ports: frozenset[str] = frozenset()
    gpus: frozenset[int] = frozenset()

    def knows_process(self, pid: str) -> bool:
        """Whether the logs name a process by its id."""
        return any(self.mentions(form + pid) for form in ("pid: ", "pid=", "pid ", "PID "))

    @property
    def failed_or_ended(self) -> float | None:
        """When its first line of failure was, else when it ended."""
        return self.failed if self.failed is not None else self.ended


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an event may have begun the failure.

    Attributes:
        index: its place among the events of the case.
        reason: why it is not used; None if it is used.
        support: what speaks for it; None if it is not used.
        fits_log: whether the log shows what such an event causes.
    """

    index: int
    reason: Reason | None = None
    support: Support | None = None
    fits_log: bool = False


@dataclass(slots=True)
class _Candidate:
    event: EventSeen
    objects: EventObjects
    rules: tuple[EventRule, ...]
    fits: bool = False
    confirmed: bool = False
    reason: Reason | None = field(default=None)


def judge(events: Sequence[EventSeen], recoveries: Sequence[EventSeen], job: JobSeen) -> list[Judgement]:
    """Whether each event may have begun the failure.

    Args:
        events: the events in question.
        recoveries: events that may report a recovery; those in question may be among them.
        job: what log and scheduler show of the job.
    """
    rules = load()
    ends = [(one, objects) for one in recoveries if (objects := read_objects(one.text)).is_recovery]
    found: list[_Candidate] = []
    for event in events:
        own = tuple({rule.id: rule for entry in event.entries if (rule := rules.get(entry)) is not None}.values())
        one = _Candidate(event, read_objects(event.text), own)
        explained = frozenset().union(*(rule.explains for rule in own), event.entries)
        one.fits = any(not entries.isdisjoint(explained) for entries in job.own_entries)
        one.fits = one.fits or (not job.own_entries and not job.other_entries.isdisjoint(explained))
        one.fits = one.fits or any(job.knows_process(pid) for pid in one.objects.pids)
        one.confirmed = any(job.status in rule.status for rule in own)
        one.reason = _reason(one, ends, job)
        found.append(one)
    _withdraw_recoveries(found)
    return [_judgement(one, found) for one in found]


def _withdraw_recoveries(found: Sequence[_Candidate]) -> None:
    """An object that fails again after it recovered has not recovered: its last failure speaks for the earlier ones."""
    for one in found:
        if one.reason is Reason.RECOVERED:
            again = (
                other
                for other in found
                if other.reason is None
                and other.event.node == one.event.node
                and _comes_before(one.event, other.event)
                and one.objects.shares(other.objects)
            )
            if any(again):
                one.reason = None


def _judgement(one: _Candidate, all_of_them: Sequence[_Candidate]) -> Judgement:
    if one.reason is not None:
        return Judgement(one.event.index, reason=one.reason, fits_log=one.fits)
    support = Support.ALONE
    if one.fits:
        support = Support.LOG
    elif one.confirmed:
        support = Support.SCHEDULER
    elif any(_is_second_source(one, other) for other in all_of_them):
        support = Support.SECOND_SOURCE
    return Judgement(one.event.index, support=support, fits_log=one.fits)


def _is_second_source(one: _Candidate, other: _Candidate) -> bool:
    """Whether another source reports the same of the same node."""
    return (
        other.reason is None
        and other.event.source != one.event.source
        and other.event.node == one.event.node
        and any(rule in other.rules for rule in one.rules)
    )


def _reason(one: _Candidate, ends: Sequence[tuple[EventSeen, EventObjects]], job: JobSeen) -> Reason | None:
    """Why a candidate is not used, None if nothing speaks against it."""
    for ask in (_asks_words, _asks_node, _asks_process, _asks_device):
        reason = ask(one, job)
        if reason is not None:
            return reason
    if _has_recovered(one, ends, job):
        return Reason.RECOVERED
    return _asks_time(one, job) or _asks_log(one, job)


def _asks_words(one: _Candidate, _job: JobSeen) -> Reason | None:
    return Reason.CORRECTED if one.objects.is_corrected else None


def _asks_node(one: _Candidate, job: JobSeen) -> Reason | None:
    """An event of another node counts only where it is of a shared service, or names one of the job's nodes."""
    if not job.nodes:
        return None
    named = one.objects.nodes
    if any(rule.object == "node" for rule in one.rules) and named and _are_hosts(named) and named.isdisjoint(job.nodes):
        return None if any(map(job.mentions, named)) else Reason.OTHER_NODE
    node = one.event.node
    if any(map(job.knows_process, one.objects.pids)):
        return None
    if node is None or short_name(node) in job.nodes or not named.isdisjoint(job.nodes):
        return None
    if any(name in one.event.text for name in job.nodes) or job.mentions(short_name(node)):
        return None
    is_shared = any(rule.object == "service" for rule in one.rules)
    return None if is_shared and (one.fits or not job.own_entries) else Reason.OTHER_NODE


def _are_hosts(names: frozenset[str]) -> bool:
    """Whether words after "node" look like host names: they have a digit."""
    return all(any(char.isdigit() for char in name) for name in names)


def _asks_process(one: _Candidate, job: JobSeen) -> Reason | None:
    objects = one.objects
    if objects.of_other_program:
        return Reason.OTHER_PROCESS
    if objects.jobs and job.job_id is not None and not any(one in job.job_id for one in objects.jobs):
        return Reason.OTHER_PROCESS
    if not any(rule.object == "process" for rule in one.rules):
        return None
    if objects.of_node:
        return Reason.OTHER_PROCESS
    if objects.pods and job.job_id is not None and "/" in job.job_id:
        name = job.job_id.rsplit("/", 1)[-1]
        if not any(name in pod for pod in objects.pods):
            return Reason.OTHER_PROCESS
    return None


def _asks_device(one: _Candidate, job: JobSeen) -> Reason | None:
    kinds = {rule.object for rule in one.rules}
    if "port" in kinds:
        if one.objects.of_management:
            return Reason.OTHER_DEVICE
        ports = frozenset(name for name in one.objects.names if ":" not in name)
        if job.ports and ports and ports.isdisjoint(job.ports):
            return Reason.OTHER_DEVICE
    if "gpu" in kinds and job.gpus and one.objects.gpus and one.objects.gpus.isdisjoint(job.gpus):
        return Reason.OTHER_DEVICE
    if "disk" in kinds and one.objects.mounts and not any(map(job.mentions, one.objects.mounts)):
        return Reason.OTHER_DEVICE
    return None


def _has_recovered(one: _Candidate, ends: Sequence[tuple[EventSeen, EventObjects]], job: JobSeen) -> bool:
    """Whether a later event reports that the same object works again, or that its node was repaired."""
    failed = job.failed_or_ended
    for end, objects in ends:
        if end.index == one.event.index or end.node != one.event.node or _comes_before(end, one.event):
            continue
        if end.time is not None and failed is not None and end.time > failed:
            continue  # it was down while the job failed
        whole_node = any(rule.object == "node" for rule in one.rules) and not (objects.gpus or objects.names)
        if objects.is_repair or whole_node or one.objects.shares(objects):
            return True
    return False


def _comes_before(one: EventSeen, other: EventSeen) -> bool:
    if one.time is not None and other.time is not None and one.time != other.time:
        return one.time < other.time
    return one.index < other.index


def _asks_time(one: _Candidate, job: JobSeen) -> Reason | None:
    """An event must lie where the failure can come from it: after the last progress, and not after the failure."""
    time = one.event.time
    failed = job.failed_or_ended
    if time is None or failed is None:
        return None
    if (job.failed is not None and job.own_entries and time > job.failed + CLOCK_SKEW_S) or _is_after_end(one, time, job):
        return Reason.LATER
    if any(rule.persists and rule.effect == "degrades" for rule in one.rules):
        return None
    within = max((rule.within_s for rule in one.rules), default=0) or _DEFAULT_WITHIN_S
    if time < failed - within - (_LONGEST_WAIT_S if job.failed is None else CLOCK_SKEW_S):
        return Reason.LONG_BEFORE
    if job.started is not None and time < job.started - CLOCK_SKEW_S:
        return Reason.LONG_BEFORE
    last = job.last_progress
    ends_run = any(rule.effect in {"ends", "follows"} for rule in one.rules)
    if last is not None and time < last - (_BUFFERED_S if ends_run else within):
        return Reason.SURVIVED
    return None


def _is_after_end(one: _Candidate, time: float, job: JobSeen) -> bool:
    """Whether an event is so much later than the job's end that it is none of its own."""
    if job.ended is None:
        return False
    of_node = any(rule.object == "node" for rule in one.rules)
    return time > job.ended + (_REPORTED_LATE_S if of_node else CLOCK_SKEW_S + _BUFFERED_S)


def _asks_log(one: _Candidate, job: JobSeen) -> Reason | None:
    if one.fits or one.confirmed:
        return None
    if job.own_entries:
        return Reason.NOT_SHOWN
    alone_enough = any(rule.object in _SEEN_BY_NODE_ONLY and rule.effect in {"ends", "stalls"} for rule in one.rules)
    return None if alone_enough else Reason.NO_TRACE
