"""Which node events may have begun a failure. Pure: the same observations give the same answers.

A node's message is a suspect, not a cause: nodes always emit corrected errors, flapping ports that nobody uses, and
yesterday's repairs. So each event is asked questions. One that speaks against it sets it aside, with the reason that a
page shows. What is left is used where the log shows something that such an event explains (event_rules.toml), where the
scheduler confirms it, or where the log shows no failure of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from classifiers.relevance.event_objects import TRAINING_PROGRAMS, EventObjects, read_objects
from classifiers.relevance.event_rules import EventRule, load, waits
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
# Judgement: events of one node so close together may be of the same trouble.
_BESIDE_S: Final = 120.0
# What ends or stalls a job without any line in its log.
_SEEN_BY_NODE_ONLY: Final = frozenset({"gpu", "node", "port"})
# Judgement: a run shows no more progress so soon after what stopped it, buffered output and late reports included.
_STOPPED_WITHIN_S: Final = 600.0
# Families of the catalogue on devices, nodes and services: the same entry in log and event is the same trouble.
_INFRASTRUCTURE: Final = (
    "nvidia.", "accelerators.", "kernel.", "network.", "fabrics.", "storage.", "slurm.", "kubernetes.", "cloud.",
    "containers.", "service.",
)  # fmt: skip
# Judgement: a job whose processes wait for each other ends at the latest so long after the failure.
_LONGEST_WAIT_S: Final = 1_800.0


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
        mentions: whether a name is in its logs, as a whole word.
        several: whether it had several processes.
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
    several: bool = True
    ports: frozenset[str] = frozenset()
    gpus: frozenset[int] = frozenset()

    def knows_process(self, pid: str) -> bool:
        """Whether the logs name a process by its id."""
        return any(self.mentions(form + pid) for form in ("pid: ", "pid=", "pid ", "PID "))

    @property
    def waits(self) -> bool:
        """Whether its processes report that another one is gone or late."""
        return not self.other_entries.isdisjoint(waits())

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
    """

    index: int
    reason: Reason | None = None
    support: Support | None = None


class _Fit(IntEnum):
    """How well log and scheduler fit an event, best last."""

    NONE = 0
    WAITS = 1  # the other processes lost one, or wait for it
    SCHEDULER = 2  # the job's status confirms it
    LINE = 3  # a process reports what such an event causes


@dataclass(slots=True)
class _Candidate:
    event: EventSeen
    objects: EventObjects
    rules: tuple[EventRule, ...]
    fit: _Fit = _Fit.NONE
    reason: Reason | None = None

    @property
    def fits(self) -> bool:
        """Whether a line of the log is explained by the event."""
        return self.fit is _Fit.LINE


def judge(events: Sequence[EventSeen], recoveries: Sequence[EventSeen], job: JobSeen) -> list[Judgement]:
    """Whether each event may have begun the failure.

    Args:
        events: the events in question.
        recoveries: all events of the case, which may report recoveries; those in question are among them.
        job: what log and scheduler show of the job.
    """
    rules = load()
    around = [(one, read_objects(one.text)) for one in recoveries]
    ends = [(one, objects) for one, objects in around if objects.is_recovery or objects.is_repair]
    companions = _Companions(around, job)
    found: list[_Candidate] = []
    for event in events:
        own = tuple({rule.id: rule for entry in event.entries if (rule := rules.get(entry)) is not None}.values())
        one = _Candidate(event, read_objects(event.text), own)
        one.fit = _fit(one, job)
        one.reason = _reason(one, ends, job) or companions.reason(one)
        found.append(one)
    _withdraw_recoveries(found, job)
    _keep_best(found, job)
    return [_judgement(one, found) for one in found]


def _fit(one: _Candidate, job: JobSeen) -> _Fit:
    if any(map(job.knows_process, one.objects.pids)):
        return _Fit.LINE
    explained = frozenset().union(*(rule.explains for rule in one.rules))
    explained |= {entry for entry in one.event.entries if entry.startswith(_INFRASTRUCTURE)}
    general = waits()
    lines = [entries for entries in job.own_entries if not entries or not entries <= general]
    if any(not (entries - general).isdisjoint(explained) for entries in lines):
        return _Fit.LINE
    if any(job.status in rule.status for rule in one.rules):
        return _Fit.SCHEDULER
    if lines:
        return _Fit.NONE
    if not (job.other_entries - general).isdisjoint(explained):
        return _Fit.LINE
    stops = any(rule.effect in {"ends", "stalls"} and rule.object != "service" for rule in one.rules)
    return _Fit.WAITS if job.several and job.waits and stops else _Fit.NONE


def _withdraw_recoveries(found: Sequence[_Candidate], job: JobSeen) -> None:
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
                one.reason = _asks_time(one, job) or _asks_log(one, job)


def _keep_best(found: Sequence[_Candidate], job: JobSeen) -> None:
    """Of several events for which different things speak, keep those for which most does.

    Where nothing but the time speaks for them, keep what happened when the run stopped.
    """
    used = [one for one in found if one.reason is None]
    if not used:
        return
    best = max(one.fit for one in used)
    for one in used:
        if one.fit < best:
            one.reason = Reason.NO_TRACE
    stopped = job.last_progress if job.last_progress is not None else job.failed_or_ended
    if best > _Fit.WAITS or stopped is None:
        return
    used = [one for one in used if one.reason is None and one.event.time is not None]
    if used:
        nearest = min(abs((one.event.time or 0.0) - stopped) for one in used)
        for one in used:
            if abs((one.event.time or 0.0) - stopped) > nearest + _BESIDE_S:
                one.reason = Reason.NO_TRACE


def _judgement(one: _Candidate, all_of_them: Sequence[_Candidate]) -> Judgement:
    if one.reason is not None:
        return Judgement(one.event.index, reason=one.reason)
    if one.fit is _Fit.LINE:
        support = Support.LOG
    elif one.fit is _Fit.SCHEDULER:
        support = Support.SCHEDULER
    elif any(_is_second_source(one, other) for other in all_of_them):
        support = Support.SECOND_SOURCE
    else:
        support = Support.ALONE
    return Judgement(one.event.index, support=support)


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


class _Companions:
    """What other events say of the process or device that an event names.

    Args:
        around: all events of the case, with what their texts name.
        job: what log and scheduler show of the job.
    """

    def __init__(self, around: Sequence[tuple[EventSeen, EventObjects]], job: JobSeen) -> None:
        self._job = job
        self._foreign = [(one, objects) for one, objects in around if _names_other_job(objects, job)]
        self._disclaimed = [(one, objects) for one, objects in around if objects.is_disclaimed or objects.is_corrected]

    def reason(self, one: _Candidate) -> Reason | None:
        """Why an event is not used by what is said beside it, None if nothing speaks against it."""
        if any(self._job.knows_process(pid) for pid in one.objects.pids):
            return None
        of_process = one.objects.pids or any(rule.object in {"process", "gpu"} for rule in one.rules)
        if of_process and not any(rule.object == "node" for rule in one.rules):
            for other, objects in self._foreign:
                if _is_beside(one.event, other) and (
                    one.objects.shares(objects) or not (objects.pids and one.objects.pids)
                ):
                    return Reason.OTHER_PROCESS
        for other, objects in self._disclaimed:
            if _is_beside(one.event, other) and one.objects.shares(objects):
                return Reason.OTHER_DEVICE
        return None


def _names_other_job(objects: EventObjects, job: JobSeen) -> bool:
    """Whether an event names jobs, and none of them is this one."""
    if not objects.jobs or job.job_id is None or not job.job_id[:1].isdigit():
        return False  # only ids of one kind can be compared
    return not any(name in job.job_id or job.mentions(name) for name in objects.jobs)


def _is_beside(one: EventSeen, other: EventSeen) -> bool:
    if one.index == other.index or one.node != other.node:
        return False
    return one.time is None or other.time is None or abs(one.time - other.time) <= _BESIDE_S


def _asks_words(one: _Candidate, _job: JobSeen) -> Reason | None:
    return Reason.CORRECTED if one.objects.is_corrected or one.objects.is_disclaimed else None


def _asks_node(one: _Candidate, job: JobSeen) -> Reason | None:
    """An event of another node counts only where it is of a shared service, or names one of the job's nodes."""
    if not job.nodes:
        return None
    named = one.objects.nodes
    if any(rule.object == "node" for rule in one.rules) and named and _are_hosts(named) and named.isdisjoint(job.nodes):
        return None if any(map(job.mentions, named)) else Reason.OTHER_NODE
    hosts = _hosts_like(job.nodes, one.event.text)
    if hosts and hosts.isdisjoint(job.nodes) and not any(map(job.mentions, hosts)):
        return Reason.OTHER_NODE
    node = one.event.node
    if any(map(job.knows_process, one.objects.pids)):
        return None
    if node is None or short_name(node) in job.nodes or not named.isdisjoint(job.nodes):
        return None
    if any(_is_word_in(name, one.event.text) for name in job.nodes) or job.mentions(short_name(node)):
        return None
    is_shared = any(rule.object == "service" for rule in one.rules)
    return None if is_shared and (one.fits or not job.own_entries) else Reason.OTHER_NODE


def _hosts_like(names: frozenset[str], text: str) -> frozenset[str]:
    """The words of a text that are written like the nodes of the job: the same letters, then a number."""
    found: set[str] = set()
    for prefix in {name.rstrip("0123456789") for name in names if name[-1:].isdigit()}:
        at = text.find(prefix) if prefix else -1
        while at >= 0:
            end = at + len(prefix)
            while end < len(text) and text[end].isdigit():
                end += 1
            if end > at + len(prefix) and not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
                found.add(text[at:end])
            at = text.find(prefix, end)
    return frozenset(found)


def _is_word_in(name: str, text: str) -> bool:
    at = text.find(name)
    return at >= 0 and not text[at + len(name) : at + len(name) + 1].isalnum()


def _are_hosts(names: frozenset[str]) -> bool:
    """Whether words after "node" look like host names: they have a digit."""
    return all(any(char.isdigit() for char in name) for name in names)


def _asks_process(one: _Candidate, job: JobSeen) -> Reason | None:
    objects = one.objects
    if objects.of_other_program:
        return Reason.OTHER_PROCESS
    if any(rule.object in {"node", "service", "port"} for rule in one.rules):
        return None
    if _names_other_job(objects, job):
        return Reason.OTHER_PROCESS
    if not any(rule.object == "process" for rule in one.rules):
        return None
    if objects.of_node or (objects.programs and not any(_is_of_job(name, job) for name in objects.programs)):
        return Reason.OTHER_PROCESS
    if objects.pods:
        name = (job.job_id or "").rsplit("/", 1)[-1]
        if not any((name and name in pod) or job.mentions(pod.rsplit("/", 1)[-1]) for pod in objects.pods):
            return Reason.OTHER_PROCESS
    return None


def _is_of_job(program: str, job: JobSeen) -> bool:
    """Whether a process of this name may be one of a training job."""
    return program.startswith(TRAINING_PROGRAMS) or job.mentions(program)


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
    if (job.failed is not None and job.own_entries and time > job.failed + CLOCK_SKEW_S) or _is_after_end(
        one, time, job
    ):
        return Reason.LATER
    if any(rule.persists and rule.effect == "degrades" for rule in one.rules):
        return None
    within = max((rule.within_s for rule in one.rules), default=0) or _DEFAULT_WITHIN_S
    waited = _LONGEST_WAIT_S if job.failed is None and (job.waits or job.own_entries) else CLOCK_SKEW_S
    if time < failed - within - waited:
        return Reason.LONG_BEFORE
    if job.started is not None and time < job.started - CLOCK_SKEW_S:
        return Reason.LONG_BEFORE
    last = job.last_progress
    if last is not None and one.fit is _Fit.WAITS and time > last + _STOPPED_WITHIN_S:
        return Reason.LATER
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
    if one.fit < _Fit.LINE and "non-fatal" in one.event.text.lower():  # the device goes on after it
        return Reason.NO_TRACE
    if one.fit:
        return None
    if job.own_entries:
        return Reason.NOT_SHOWN
    alone_enough = any(rule.object in _SEEN_BY_NODE_ONLY and rule.effect in {"ends", "stalls"} for rule in one.rules)
    return None if alone_enough else Reason.NO_TRACE
