"""How well the log and the scheduler of a job fit a node event: whether they show what such an event does."""

import re
from typing import Final

from classifiers.node_names import short_name
from classifiers.observation_names import COLLECTIVES_DIFFER, SILENT_UNTIL_LIMIT
from classifiers.relevance.entry_groups import (
    are_of_redundant_parts,
    deadlines_reached,
    nodes_lost,
    peer_lost,
    peer_silent,
    program_errors,
    reported_consequences,
)
from classifiers.relevance.event_candidates import Candidate, Fit, JobEvidence
from classifiers.relevance.event_places import (
    CLOCK_SKEW_S,
    began_the_wait,
    is_at_once,
    is_named_like_nodes,
    is_of_named_host,
    names_node_of,
)
from classifiers.relevance.event_rules import (
    MANY_AFFECTED,
    explained_at_once,
    explained_by,
    explained_by_name,
    explained_by_version,
    explained_or_shown,
    leads_to,
)
from classifiers.relevance.event_times import BUFFERED_S, READ_AHEAD_S
from classifiers.relevance.event_words import changes_library_of, is_of_driver, made_older, raises_limit
from classifiers.relevance.words_in_text import quotes

# Judgement: steps are logged so much later at the latest than a device got slower.
_SLOWER_WITHIN_S: Final = 900.0
# Judgement: steps are logged so much later at the latest than a part of the node failed.
_SLOWER_AT_ONCE_S: Final = 120.0
# Judgement: steps are logged so much later at the latest than something of their node was changed.
_SLOWER_CHANGED_S: Final = 300.0
# Judgement: a job that was slow for a shorter time may have had a step with more work.
_SLOW_FOR_S: Final = 60.0
# Judgement: who needs a service meets a change of it within this time, in seconds.
_CHANGED_BEFORE_S: Final = 1_800.0
# The families of the catalogue whose entries know errors of a kind of object.
_FAMILIES: Final = {
    "disk": ("storage",),
    "filesystem": ("storage",),
    "port": ("network", "fabrics", "adapters", "links"),
    "gpu": ("cuda", "nvidia", "accelerators"),
}
# Directories of every machine, which say nothing of who is named like them.
_COMMON_DIRECTORIES: Final = frozenset(
    {"local", "home", "data", "share", "shared", "site", "packages", "train", "user"}
)
# Judgement: what was reported longer before a job would have been repaired, or met by another one.
_KNOWN_FOR_S: Final = 43_200.0
# Judgement: a test so soon before a job, such as by its prolog, found the state in which the job met the node.
_TESTED_BEFORE_S: Final = 900.0
# Judgement: digits of a version that say which one a log means.
_DIGITS_OF_VERSION: Final = 3
_STOPPING: Final = frozenset({"ends", "stalls"})
_OF_NODE: Final = frozenset({"gpu", "port", "node"})
_PARTS: Final = frozenset({"gpu", "port"})
_DATA: Final = frozenset({"disk", "filesystem"})
_SILENCING: Final = _OF_NODE | _DATA
_ON_DATA: Final = frozenset({"ends", "stalls", "degrades"})


class EventFit:
    """How well log and scheduler of a job fit events."""

    def __init__(self, job: JobEvidence) -> None:
        self._job = job
        general = peer_lost()
        lines = [entries for entries in job.own_entries if entries.isdisjoint(general)]
        self._has_own_failure = bool(lines)
        self._own = frozenset().union(*lines) - general
        self._others = job.other_entries - general
        self._telling_others = self._others - reported_consequences()
        self._lost_nodes = job.other_entries & nodes_lost()
        self._failed_of_program: bool | None = None  # until it is asked for
        self._is_unanswered = not job.other_entries.union(*job.own_entries).isdisjoint(peer_silent())

    def of(self, one: Candidate) -> Fit:
        """How well log and scheduler fit an event."""
        return self._of_change(one) if "changes" in one.traits.effects else self._of_event(one)

    def _of_event(self, one: Candidate) -> Fit:
        job = self._job
        explained = explained_or_shown(one.event.entries)
        is_shown = (  # the cheapest question first
            not self._own.isdisjoint(explained)
            or (job.names_processes and any(map(job.knows_process, one.objects.pids)))
            or self._shows_at_once(one)
            or self._is_of_failure(one)
            or self._fits_at_once(one)
        )
        if is_shown:
            return Fit.LINE
        if self._slowed_the_job(one) or _is_of_late_node(one, job):
            return Fit.SLOWER
        if any(job.status in rule.status for rule in one.rules) or _was_slow_from_the_start(one, job):
            return Fit.SCHEDULER
        if self._has_own_failure and (self._own or self._telling_others.isdisjoint(explained)):
            return Fit.NONE
        return self._by_other_processes(one, explained)

    def _slowed_the_job(self, one: Candidate) -> bool:
        """Whether the steps took longer since an event, in a job that did not fail of an error of its program."""
        if self._failed_of_program is None:
            errors = program_errors() - peer_lost() if self._job.timed_out else program_errors()
            self._failed_of_program = any(not entries.isdisjoint(errors) for entries in self._job.own_entries)
        return not self._failed_of_program and _steps_took_longer(one, self._job)

    def _is_of_failure(self, one: Candidate) -> bool:
        """Whether an event of others quotes the failure, or is of the GPU or directory that its lines name.

        The failure may be of a broken GPU or of a program then, or of a file that is not there or was not mounted.
        """
        if MANY_AFFECTED in one.event.entries:
            return quotes(one.event.text, self._job.failure_text())
        if self._own.isdisjoint(explained_by_name(one.event.entries)) or not self._job.failed_on(one.event.node):
            return False
        if "filesystem" in one.traits.objects and _names_directory_of(one, self._job):
            return True
        return "gpu" in one.traits.objects and not one.objects.gpus.isdisjoint(self._job.failed_gpus())

    def _by_other_processes(self, one: Candidate, explained: frozenset[str]) -> Fit:
        """How well what processes say of others fits an event, where none reports a known failure of its own."""
        job = self._job
        ports = [rule for rule in one.rules if rule.object == "port"] if self._is_unanswered else []
        ends_port = any(rule.effect in {"ends", "stalls"} for rule in ports)
        # That a whole node is gone says more than that a peer is: no event of another kind explains it.
        is_lost_node = not self._lost_nodes.isdisjoint(explained)
        if ends_port or is_lost_node or not self._others.isdisjoint(explained):
            return Fit.LINE
        if COLLECTIVES_DIFFER in job.other_entries:
            return Fit.NONE  # ranks that call different collectives wait for one another, and for no event
        effects = {rule.effect for rule in one.rules if rule.object != "service"}
        shows = (job.waits and "ends" in effects) or (job.timed_out and "stalls" in effects)
        # A port that has errors may lose a connection; a program that ended loses it as well.
        shows = shows or (job.timed_out and began_the_wait(one, job))
        return Fit.WAITS if (job.several and shows) or self._fell_silent(one) else Fit.NONE

    def _fell_silent(self, one: Candidate) -> bool:
        """Whether a job printed nothing until its limit from the time on when a part of its node stopped."""
        job, time = self._job, one.event.time
        if SILENT_UNTIL_LIMIT not in job.other_entries or time is None or job.stalled is None:
            return False
        stops = any(rule.effect in _STOPPING and rule.object in _SILENCING for rule in one.rules)
        return stops and names_node_of(one, job) and -BUFFERED_S <= time - job.stalled <= READ_AHEAD_S

    def _of_change(self, one: Candidate) -> Fit:
        if raises_limit(one.event.text, one.event.entries):
            return Fit.NONE
        shows = (self._is_of_changed, self._ended_then, self._is_of_unknown_words)
        if any(ask(one) for ask in shows):
            return Fit.LINE
        if self._slowed_the_job(one):
            return Fit.SLOWER
        if not one.traits.stalls:
            return Fit.NONE
        return Fit.WAITS if self._stopped_then(one) or self._never_began(one) else Fit.NONE

    def _is_of_unknown_words(self, one: Candidate) -> bool:
        """Whether no entry knows the failure, and the log names the host of a service that was changed just before."""
        time, failed = one.event.time, self._job.failed_or_ended
        if self._own or not self._job.own_entries or time is None or failed is None:
            return False
        return 0 <= failed - time <= _CHANGED_BEFORE_S and is_of_named_host(one, self._job)

    def _ended_then(self, one: Candidate) -> bool:
        """Whether a job failed at once after a change of its node, without a cause that its log or scheduler shows.

        Or with an error that may have the cause for which the change speaks. Only changes that bring trouble to nodes
        and their daemons count, not such as of files.
        """
        job = self._job
        if not leads_to(one.event.entries) or not (is_at_once(one, job) and names_node_of(one, job)):
            return False
        if not job.own_entries:
            return job.other_entries <= reported_consequences() and not job.ends_in_words
        return not one.event.causes.isdisjoint(job.own_causes)

    def _stopped_then(self, one: Candidate) -> bool:
        """Whether the processes made no progress from the moment on, and waited until a limit."""
        job, time = self._job, one.event.time
        last = job.last_progress if job.last_progress is not None else job.stalled
        if time is None or last is None or self._has_own_failure or not job.timed_out:
            return False
        if not job.other_entries.isdisjoint(program_errors()):
            return False  # such as ranks that call different collectives
        stopped = last if job.stalled is None else max(last, job.stalled)
        return last - READ_AHEAD_S <= time <= stopped + CLOCK_SKEW_S

    def _never_began(self, one: Candidate) -> bool:
        """Whether the job began after a change of one of its nodes, and waited until a limit before any progress."""
        job, time = self._job, one.event.time
        if time is None or job.started is None or job.last_progress is not None or time > job.started:
            return False
        if self._has_own_failure or not job.other_entries.isdisjoint(program_errors()):
            return False
        if not job.timed_out and not (job.waited_to_begin and time >= job.started - _CHANGED_BEFORE_S):
            return False
        # A change without a node, or of something that is named otherwise than nodes, is of the whole platform.
        return bool(job.nodes) and (names_node_of(one, job) or not is_named_like_nodes(one, job))

    def _shows_at_once(self, one: Candidate) -> bool:
        """Whether the log shows at once after an event what such an event, but also a program alone, may cause."""
        shown = self._own if self._has_own_failure else self._others
        if shown.isdisjoint(explained_at_once(one.event.entries)):
            return False
        return is_at_once(one, self._job)

    def _fits_at_once(self, one: Candidate) -> bool:
        """Whether the log shows, at once after an event, an error that may be of the same trouble.

        The error may have the cause of an event that ends or stalls jobs, or be of the same kind of object, or of a
        file in a directory that the event names.
        """
        job = self._job
        was_found = bool(job.own_entries) and self._was_found(one)
        if not was_found and not (job.own_entries and is_at_once(one, job)):
            return False
        causes = {code for code in one.event.causes if not _is_of_user(code)}
        may_end = was_found or not one.traits.effects.isdisjoint({"ends", "stalls"})
        if may_end and not causes.isdisjoint(job.own_causes):
            return True
        if not causes or was_found or not names_node_of(one, job) or not job.failed_on(one.event.node):
            return False
        return self._is_of_same_object(one) or _names_directory_of(one, job)

    def _was_found(self, one: Candidate) -> bool:
        """Whether a test of the job's time, or just before it, found a state that lasts until a repair."""
        time, started = one.event.time, self._job.started
        if not one.traits.found_later or time is None or started is None:
            return False
        return names_node_of(one, self._job) and time >= started - _TESTED_BEFORE_S

    def _is_of_same_object(self, one: Candidate) -> bool:
        """Whether the log shows an error of the kind of object that an event is about, as of files and disks."""
        families = {family for name in one.traits.objects for family in _FAMILIES.get(name, ())}
        return any(entry.partition(".")[0] in families for entry in self._own)

    def _is_of_changed(self, one: Candidate) -> bool:
        """Whether the failure is what a change causes, or is about something that the change names."""
        shown = self._own if self._has_own_failure else self._own | self._others
        if not shown.isdisjoint(explained_by(one.event.entries)) or self._is_of_version(one, shown):
            return True
        named = explained_by_name(one.event.entries)
        shown = frozenset().union(*self._job.own_entries) if self._job.own_entries else self._job.other_entries
        if shown.isdisjoint(named):
            return False
        names = one.objects.specific_names
        is_named = self._job.failure_names(names if one.event.node is None else names | {one.event.node})
        # Numbers of two digits are in every log.
        versions = (name for name in one.objects.new_versions if sum(map(str.isdigit, name)) >= _DIGITS_OF_VERSION)
        return is_named or _is_of_path(one, self._job) or any(map(self._job.mentions, versions))

    def _is_of_version(self, one: Candidate, shown: frozenset[str]) -> bool:
        """Whether a driver or library of the job's nodes was made older or newer and no longer fits what failed.

        A job may bring a newer library itself: what the platform made newer counts where the same job succeeded before.
        """
        text, job = one.event.text, self._job
        is_older = made_older(text)
        if is_older is None or shown.isdisjoint(explained_by_version(one.event.entries, is_older=is_older)):
            return False
        if is_named_like_nodes(one, job) and not names_node_of(one, job):
            return False
        if is_of_driver(text):
            return is_older
        return (is_older or job.worked_before) and changes_library_of(text, job.failure_text())


def _is_of_user(cause: str) -> bool:
    return cause.startswith("USER")


def _is_of_path(one: Candidate, job: JobEvidence) -> bool:
    """Whether who reports an event is named like a directory of which the lines of the failure name a file.

    Such as scratch-cleaner and /scratch/data/part-1.
    """
    words = re.findall(r"[a-z]{4,32}", (one.event.source or "").lower())
    return bool(words) and any(f"/{word}/" in job.failure_text() for word in words if word not in _COMMON_DIRECTORIES)


def _names_directory_of(one: Candidate, job: JobEvidence) -> bool:
    """Whether the lines of the failure name a file in a directory that an event names."""
    text = job.failure_text()
    return any(path.count("/") and len(path) > 1 and f"{path}/" in text for path in one.objects.mounts)


def _steps_took_longer(one: Candidate, job: JobEvidence) -> bool:
    """Whether the steps of a job took longer since an event that may slow it down, or that stops a part of the node."""
    traits = one.traits
    may_slow = traits.slows or (traits.degrades_on and not traits.objects.isdisjoint(_PARTS))
    stops = not traits.effects.isdisjoint(_STOPPING) and not traits.objects.isdisjoint(_OF_NODE)
    stops = stops and not are_of_redundant_parts(one.event.entries)  # the node goes on as before
    if one.event.time is None:
        return False
    is_own_change = "changes" in traits.effects and names_node_of(one, job)
    if not (may_slow or stops or is_own_change or _may_slow_own_node(one, job)):
        return False
    if "changes" not in traits.effects and short_name(one.event.node or "") in job.slow_nodes():
        return True
    since = job.slowed()
    if since is not None and not _stayed_slow(since, job):
        return False
    # Lines may be missing between the last fast step and the first slow one.
    if _slowed_in_few_lines(one, job) and (may_slow or is_own_change or _may_slow_own_node(one, job)):
        return True
    # A change comes before what it causes; monitors report a state with delay.
    earliest = -CLOCK_SKEW_S if "changes" in traits.effects else -_SLOWER_WITHIN_S
    latest = _SLOWER_WITHIN_S
    if not may_slow:
        earliest = -_SLOWER_AT_ONCE_S
        latest = _SLOWER_CHANGED_S if is_own_change else _SLOWER_AT_ONCE_S
    return since is not None and earliest <= since - one.event.time <= latest


def _was_slow_from_the_start(one: Candidate, job: JobEvidence) -> bool:
    """Whether a job met its limit on a node with a part that was slow, and stays so, before the job began."""
    time, started, traits = one.event.time, job.started, one.traits
    if time is None or started is None or job.status != "timeout" or not (traits.slows and traits.degrades_on):
        return False
    return started - _KNOWN_FOR_S <= time <= started + _SLOWER_AT_ONCE_S and names_node_of(one, job)


def _may_slow_own_node(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is of a part of one of the job's nodes with which its steps may take longer.

    Errors of a port or GPU that goes on are none.
    """
    effects, objects = one.traits.effects, one.traits.objects
    of_data = not objects.isdisjoint(_DATA) and not effects.isdisjoint(_ON_DATA)
    of_part = not objects.isdisjoint(_PARTS) and not effects.isdisjoint(_STOPPING)
    return (of_data or of_part) and names_node_of(one, job) and not are_of_redundant_parts(one.event.entries)


def _slowed_in_few_lines(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event was when a job became slower that met its limit, where its log shows only a few steps.

    The log may have no times: an event of the time of the job counts then.
    """
    if job.status != "timeout" and job.other_entries.isdisjoint(deadlines_reached()):
        return False
    between, time = job.slowed_between(), one.event.time
    if between is None or time is None:
        return False
    begin = between[0] if between[0] is not None else job.started
    end = between[1] if between[1] is not None else job.failed_or_ended
    if begin is None or end is None:
        return False
    early = CLOCK_SKEW_S if "changes" in one.traits.effects else _SLOWER_WITHIN_S
    return begin - early <= time <= end


def _is_of_late_node(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event that slows a node down is of the one for which the others waited, and not of before the job."""
    time, may_slow = one.event.time, one.traits.slows and "node" in one.traits.objects
    if not may_slow or time is None or job.started is None or time < job.started - _SLOWER_WITHIN_S:
        return False
    return job.timed_out and short_name(one.event.node or "") in job.late_nodes()


def _stayed_slow(since: float, job: JobEvidence) -> bool:
    """Whether a job was slow for so long that something of its platform may be why, not a single step."""
    end = max((time for time in (job.last_progress, job.failed_or_ended) if time is not None), default=None)
    return end is None or end - since >= _SLOW_FOR_S
