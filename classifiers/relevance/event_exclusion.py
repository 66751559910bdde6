"""Why a node event is set aside: by its words, node, process, device, recovery, time, or by the log."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from classifiers.node_names import short_name
from classifiers.relevance.entry_groups import are_of_redundant_parts
from classifiers.relevance.event_candidates import Candidate, Fit, JobEvidence, MatchedEvent, Reason
from classifiers.relevance.event_objects import (
    TRAINING_PROGRAMS,
    EventObjects,
    may_concern_others,
    read_objects,
    reports_recovery,
)
from classifiers.relevance.event_places import exclusion_by_node, is_of_absent_pod, is_own_pod
from classifiers.relevance.event_rules import rules_of
from classifiers.relevance.event_times import (
    BUFFERED_S,
    comes_before,
    exclusion_by_time,
    is_shown_until_repair,
)
from classifiers.relevance.words_in_text import is_word_in
from classifiers.signatures import compile_set

_Read = tuple[MatchedEvent, EventObjects]
# Judgement: events of one node so close together may be of the same trouble.
BESIDE_S: Final = 120.0
# Judgement: clocks of one node's kernel and daemons agree to this, in seconds.
_SAME_MOMENT_S: Final = 2.0
# The family of the catalogue whose entries know no message, only the part that it is about and words of failure.
_GENERAL: Final = "events."
# What ends or stalls a job without any line in its log.
_SEEN_BY_NODE_ONLY: Final = frozenset({"gpu", "node", "port"})
# What is swapped on a node, by the kind of object that it is or carries; a repair of one says nothing of the others.
_PARTS: Final = {
    "gpu": re.compile(r"(?i)\bgpus?\b|\bhgx\b|\bbaseboard\b|\baccelerator"),
    "port": re.compile(r"(?i)\bcables?\b|\btransceivers?\b|\boptics?\b|\bnics?\b|\bhcas?\b|\badapters?\b|\bports?\b"),
    "disk": re.compile(r"(?i)\bdisks?\b|\bssds?\b|\bnvme\w*|\bdrives?\b"),
    "power": re.compile(r"(?i)\bpsus?\b|\bpower suppl"),
    "cooling": re.compile(r"(?i)\bfans?\b|\bfan tray|\bpump\b"),
    "memory": re.compile(r"(?i)\bdimms?\b"),
}
_KINDS: Final = tuple(_PARTS)

# Linux, mm/memory-failure.c: the kernel took a page out of use, after it had killed the process that used it.
_PAGE_TAKEN: Final = re.compile(r"\bMemory failure: 0x[0-9a-f]+: recovery action for\b")


def exclusion_of(one: Candidate, events_of_node: "EventsOfNode", job: JobEvidence) -> Reason | None:
    """Why a candidate is not used, None if nothing is against it."""
    for exclusion in (_exclusion_by_words, exclusion_by_node, _exclusion_by_process, _exclusion_by_device):
        reason = exclusion(one, job)
        if reason is not None:
            return reason
    if _has_recovered(one, events_of_node, job):
        return Reason.RECOVERED
    return exclusion_by_time(one, job) or exclusion_by_log(one, job)


class EventsOfNode:
    """What other events of the same node say of the process or device that an event names.

    Events and texts are read only when a node is asked for.

    Args:
        events: the events of the case; gone through once.
        job: what log and scheduler show of the job.
    """

    def __init__(self, events: Iterable[MatchedEvent], job: JobEvidence) -> None:
        self._job = job
        self._events = events
        self._by_node: dict[str | None, list[MatchedEvent]] | None = None
        self._read: dict[str, EventObjects] = {}  # by text
        self._naming: dict[str | None, list[MatchedEvent]] = {}
        self._recovers: dict[int, bool] = {}  # by place, whether an event reports that something works again

    def _events_by_node(self) -> Mapping[str | None, Sequence[MatchedEvent]]:
        if self._by_node is None:
            self._by_node = {}
            for one in self._events:
                self._by_node.setdefault(one.node, []).append(one)
        return self._by_node

    def _events_of(self, node: str | None) -> Sequence[MatchedEvent]:
        return self._events_by_node().get(node, ())

    def _beside(self, one: MatchedEvent) -> Iterator[_Read]:
        """The other events of the node at the time of an event that may say something of it; no other text is read."""
        for other in self._events_of(one.node):
            if _is_beside(one, other) and may_concern_others(other.text):
                yield other, self.objects_of(other)

    def objects_of(self, one: MatchedEvent) -> EventObjects:
        """What the text of an event names."""
        objects = self._read.get(one.text)
        if objects is None:
            objects = self._read[one.text] = read_objects(one.text)
        return objects

    def recoveries(self, one: Candidate) -> list[MatchedEvent]:
        """The later events of a node, or of a controller that names it, that report that something works again."""
        node = one.event.node
        naming = self._naming.get(node)
        if naming is None:
            events = [other for of_node in self._events_by_node().values() for other in of_node]
            if node is None:
                naming = [other for other in events if other.node is None]
            else:
                name = short_name(node)
                naming = [other for other in events if other.node == node or is_word_in(name, other.text)]
            self._naming[node] = naming
        return [end for end in naming if _is_later(end, one) and self._is_recovery(end)]

    def _is_recovery(self, end: MatchedEvent) -> bool:
        known = self._recovers.get(end.index)
        if known is None:
            known = self._recovers[end.index] = reports_recovery(end.text)
        return known

    def reason(self, one: Candidate) -> Reason | None:
        """Why an event is not used by what is said beside it, None if nothing is against it."""
        if any(self._job.knows_process(pid) for pid in one.objects.pids):
            return None
        kinds = one.traits.objects
        if (one.objects.pids or "process" in kinds or "gpu" in kinds) and "node" not in kinds:
            for other, objects in self._beside(one.event):
                if _names_other_job(objects, self._job) and (
                    one.objects.shares(objects) or self._reports((other, objects), one)
                ):
                    return Reason.OTHER_PROCESS
        may_be_redundant, ends = are_of_redundant_parts(one.event.entries), "ends" in one.traits.effects
        for _, objects in self._beside(one.event):
            if may_be_redundant and objects.is_redundant:
                return Reason.OTHER_DEVICE
            # Corrected errors often come before the one that is not: they say nothing of an event that ends processes.
            of_nobody = objects.is_disclaimed or (not ends and objects.is_corrected)
            if of_nobody and (
                one.objects.shares(objects) or not one.objects.filesystems.isdisjoint(objects.filesystems)
            ):
                return Reason.OTHER_DEVICE
        return None

    def _reports(self, report: _Read, one: Candidate) -> bool:
        """Whether an event of another job may be a daemon's report of this one: of the same kind, and not before it.

        Unless an event that names a process of that job is what it reports.
        """
        other, objects = report
        same_kind = any(rule in one.rules for rule in rules_of(other.entries))
        if (objects.pids and one.objects.pids) or not same_kind:
            return False
        if other.time is not None and one.event.time is not None and other.time < one.event.time - _SAME_MOMENT_S:
            return False
        return not any(
            named.pids and not named.jobs.isdisjoint(objects.jobs) and _names_other_job(named, self._job)
            for _, named in self._beside(other)
        )


def _names_other_job(objects: EventObjects, job: JobEvidence) -> bool:
    """Whether an event names jobs, and none of them is this one.

    Where the job has no number as its id, its logs and the scheduler's message may name one.
    """
    if not _names_unknown_jobs(objects, job):
        return False
    if job.is_numbered:
        return not any(name in (job.job_id or "") for name in objects.jobs)
    return bool(job.job_numbers()) or not job.of_batch_system


def _names_unknown_jobs(objects: EventObjects, job: JobEvidence) -> bool:
    """Whether an event names jobs, none of which the logs name."""
    return bool(objects.jobs) and not any(map(job.mentions, objects.jobs))


def _is_beside(one: MatchedEvent, other: MatchedEvent) -> bool:
    if one.index == other.index or one.node != other.node:
        return False
    return one.time is None or other.time is None or abs(one.time - other.time) <= BESIDE_S


def _exclusion_by_words(one: Candidate, _job: JobEvidence) -> Reason | None:
    if one.objects.is_corrected or one.objects.is_disclaimed:
        return Reason.CORRECTED
    if not one.event.entries or not one.objects.is_recovery:
        return None
    # General wordings also match the report that the part works again.
    is_general = all(entry.startswith(_GENERAL) for entry in one.event.entries)
    return Reason.RECOVERED if is_general or one.objects.is_over else None


def _exclusion_by_process(one: Candidate, job: JobEvidence) -> Reason | None:
    if is_shown_until_repair(one, job):
        return None  # whichever process met it first: the object stays broken
    if "gpu" in one.traits.objects and one.objects.of_monitor and not one.objects.jobs:
        return None
    return Reason.OTHER_PROCESS if one.objects.of_other_program or _is_of_other_process(one, job) else None


def _is_of_other_process(one: Candidate, job: JobEvidence) -> bool:
    objects, kinds = one.objects, one.traits.objects
    if any(map(job.knows_process, objects.pids)):
        return False
    if not kinds.isdisjoint({"node", "process", "service"}) and _is_of_other_pod(one, job):
        return True
    if not kinds.isdisjoint({"node", "port"}):
        return False
    if _names_other_job(objects, job) or (objects.owners and _is_of_other_owner(objects, job)):
        return True
    is_unknown = not job.is_numbered and _names_unknown_jobs(objects, job)
    if is_unknown and kinds == {"process"} and one.fit <= Fit.WAITS:
        return True  # of a job that nothing shows to be this one
    return "service" not in kinds and _is_of_other_program(one, job)


def _is_of_other_owner(objects: EventObjects, job: JobEvidence) -> bool:
    """Whether an event is of users or groups of which neither the scheduler nor a log of the job knows one."""
    return objects.owners.isdisjoint(job.owners) and not any(map(job.mentions, objects.owners))


def _is_of_other_program(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is of programs that no training job starts, or of the node's own services."""
    objects, kinds = one.objects, one.traits.objects
    names_program = bool(objects.programs) and not kinds.isdisjoint({"process", "gpu"})
    if names_program and not any(_is_of_job(name, job) for name in objects.programs):
        return True
    return "process" in kinds and objects.of_node


def _is_of_other_pod(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is the trouble of a pod of another job, such as its eviction."""
    if not one.objects.pods or is_own_pod(one.objects, job) or any(rule.shared for rule in one.rules):
        return False
    confirmed = any(job.status in rule.status for rule in one.rules)
    at_the_end = job.ended is None or one.event.time is None or abs(job.ended - one.event.time) <= BESIDE_S
    return not (confirmed and at_the_end)


def _is_of_job(program: str, job: JobEvidence) -> bool:
    """Whether a process of this name may be one of a training job."""
    return program.startswith(TRAINING_PROGRAMS) or job.mentions(program)


def _exclusion_by_device(one: Candidate, job: JobEvidence) -> Reason | None:
    kinds = one.traits.objects
    if kinds and kinds <= {"port", "service"} and one.objects.of_management:
        return Reason.OTHER_DEVICE
    if "port" in kinds and (reason := _exclusion_by_port(one, job)) is not None:
        return reason
    if "gpu" in kinds and job.gpus and one.objects.gpus and one.objects.gpus.isdisjoint(job.gpus):
        return Reason.OTHER_DEVICE
    if "disk" in kinds and not job.failed_on(one.event.node):
        return Reason.OTHER_DEVICE  # a disk of another node than those whose processes failed
    if "disk" in kinds and one.objects.mounts and not any(map(job.mentions, one.objects.mounts)):
        # A line that does not say where it could not write may be about any disk of its node.
        may_be_it = one.fits and not job.names_paths
        return None if may_be_it else Reason.OTHER_DEVICE
    return None


def _exclusion_by_port(one: Candidate, job: JobEvidence) -> Reason | None:
    """Why a port is none that the job uses, by the lists that its logs print, or by the lines of its failure.

    Those name the InfiniBand device of their own node; at the far end, whose processes may be silent, it is another.
    """
    ports = frozenset(name for name in one.objects.names if ":" not in name)
    if job.ports or not ports:
        return Reason.OTHER_DEVICE if ports and ports.isdisjoint(job.ports) else None
    name = short_name(one.event.node or "")
    is_near = name in job.failed_nodes or (job.nodes == {name} and not job.has_more_nodes)
    if not is_near or not all(port.startswith("mlx5_") for port in ports):
        return None
    failed = job.failed_ports()
    return Reason.OTHER_PORT if failed and ports.isdisjoint(failed) else None


def _has_recovered(one: Candidate, events_of_node: EventsOfNode, job: JobEvidence) -> bool:
    """Whether a later event reports that the same object works again, or that its node was repaired."""
    ends = events_of_node.recoveries(one)
    if not ends:  # most have none; how well the log fits an event is asked later then, or never
        return False
    failed = job.failed_or_ended
    if failed is not None and job.stalled is not None:
        failed = min(failed, job.stalled)  # time-outs are reported long after what the ranks waited for
    elif job.failed is None and one.fits:
        # No line tells when it failed: that may have been at once after its last progress.
        failed = job.latest_progress() or failed
    # Not later than the failure: it was down until then.
    ends = [end for end in ends if end.time is None or failed is None or end.time <= failed]
    if not ends:
        return False
    if one.fit is Fit.SLOWER or "changes" in one.traits.effects:
        return False  # the job stayed slow; what was changed stays so
    # What was in progress then has failed all the same, whatever works again soon after.
    has_hit = _is_just_before(one, failed) and one.fits
    for end in ends:
        objects = events_of_node.objects_of(end)
        if has_hit and not objects.is_repair:
            continue
        if "Memory failure" in end.text and _PAGE_TAKEN.search(end.text) is not None:
            continue
        whole_node = "node" in one.traits.objects and not (objects.gpus or objects.names)
        shares = one.objects.shares(objects)
        of_other = bool(objects.names and one.objects.names) and not shares
        repaired = objects.is_repair and not of_other and (shares or not _is_of_other_part(end, one))
        same_mount = not one.objects.mounts.isdisjoint(objects.mounts)
        if not same_mount and one.objects.mounts and one.rules and all(rule.persists for rule in one.rules):
            continue  # what is not mounted stays so when the node answers again
        if repaired or whole_node or same_mount or shares or _is_unnamed_of(one, end):
            return True
    return False


def _is_later(end: MatchedEvent, one: Candidate) -> bool:
    """Whether a report of a recovery is later than an event."""
    return end.index != one.event.index and not comes_before(end, one.event)


def _is_of_other_part(end: MatchedEvent, one: Candidate) -> bool:
    """Whether a report that the GPUs are fine says nothing of what an event is about, as a clock or a disk."""
    kinds = one.traits.objects
    if not kinds.isdisjoint({"node", "process"}) or not one.rules:
        return False
    named = _parts_in(end.text)
    return bool(named) and not kinds.isdisjoint(_PARTS) and named.isdisjoint(kinds | _parts_in(one.event.text))


@lru_cache(maxsize=4_096)  # each recovery is compared with many events
def _parts_in(text: str) -> frozenset[str]:
    if not text.isascii():  # of other letters, the engines know different ones
        return frozenset([kind for kind, words in _PARTS.items() if words.search(text) is not None])
    found = _parts()(text.encode())
    return frozenset([_KINDS[place] for place in found]) if found else frozenset()


@cache
def _parts() -> Callable[[bytes], Sequence[int] | None]:
    """What finds the kinds of parts that a text in ASCII names, by their places in `_KINDS`, in one pass."""
    return compile_set([words.pattern for words in _PARTS.values()])


def _is_just_before(one: Candidate, failed: float | None) -> bool:
    """Whether the failure shows within the time that output may be buffered."""
    time = one.event.time
    return time is not None and failed is not None and 0 <= failed - time <= BUFFERED_S


def _is_unnamed_of(one: Candidate, end: MatchedEvent) -> bool:
    """Whether an event names no device or server, and a recovery soon after it is of the same driver or daemon."""
    if one.objects.names or one.objects.gpus or not _is_beside(one.event, end):
        return False
    subsystems = (entry.partition(".")[2].partition("-")[0] for entry in one.event.entries)
    text = end.text.lower()
    return any(is_word_in(name, text) for name in subsystems)


def exclusion_by_log(one: Candidate, job: JobEvidence) -> Reason | None:
    """The reason against an event that leaves no trace in the log where it would leave one."""
    if one.fit < Fit.LINE and "non-fatal" in one.event.text.lower():  # the device goes on after it
        return Reason.NO_TRACE
    if one.fit:
        return None
    if "changes" in one.traits.effects:
        return Reason.NOT_SHOWN
    if job.own_entries or job.ends_in_words:
        return Reason.NOT_SHOWN
    if are_of_redundant_parts(one.event.entries):
        return Reason.NO_TRACE
    alone_enough = any(rule.object in _SEEN_BY_NODE_ONLY and rule.effect in {"ends", "stalls"} for rule in one.rules)
    return None if alone_enough or _ended_the_job(one, job) or _kept_from_start(one, job) else Reason.NO_TRACE


def _kept_from_start(one: Candidate, job: JobEvidence) -> bool:
    """Whether a pod could not start and the job, whose logs show no failure of its own, never began."""
    if is_of_absent_pod(one, job):
        return True
    never_began = job.last_progress is None and any(rule.before_logs for rule in one.rules)
    return never_began and (not one.objects.pods or is_own_pod(one.objects, job))


def _ended_the_job(one: Candidate, job: JobEvidence) -> bool:
    """Whether a process was ended from outside just before the job ended, of which its log has no line."""
    if "ends" not in one.traits.effects or one.event.time is None or job.ended is None:
        return False
    return job.ended - one.event.time <= one.traits.within_s
