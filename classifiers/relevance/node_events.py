"""Which node events may have begun a failure. Pure: the same observations give the same answers.

A node's message is a suspect, not a cause: nodes always emit corrected errors, flapping ports that nobody uses, and
yesterday's repairs. So each event has to pass questions. An answer against it sets it aside, with the reason that a
page shows. What is left is used where the log shows something that such an event explains (event_rules.toml), where the
scheduler confirms it, or where the log shows no failure of its own.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from classifiers.node_names import short_name
from classifiers.observation_names import COLLECTIVES_DIFFER
from classifiers.relevance.event_candidates import Candidate, EventSeen, Fit, JobSeen, Judgement, Reason, Support
from classifiers.relevance.event_chains import effects_of, speaks_for
from classifiers.relevance.event_places import is_of_silent_node, names_node_of
from classifiers.relevance.event_questions import BESIDE_S, Companions, asks_log, reason_against
from classifiers.relevance.event_rules import (
    consequences,
    explained_at_once,
    explained_by,
    explained_by_name,
    nodes_lost,
    of_programs,
    of_redundant_parts,
    rules_of,
    unanswered,
    waits,
)
from classifiers.relevance.event_times import (
    BUFFERED_S,
    CLOCK_SKEW_S,
    READ_AHEAD_S,
    asks_time,
    comes_before,
    was_when_written,
)
from classifiers.relevance.raised_limits import raises_limit

# Judgement: steps are logged so much later at the latest than a device got slower.
_SLOWER_WITHIN_S: Final = 900.0
# Judgement: steps are logged so much later at the latest than a part of the node failed.
_SLOWER_AT_ONCE_S: Final = 120.0
# Judgement: steps are logged so much later at the latest than something of their node was changed.
_SLOWER_CHANGED_S: Final = 300.0
# Judgement: a job that was slow for a shorter time may have had a step with more work.
_SLOW_FOR_S: Final = 60.0
_ASKED_TO_END: Final = "shell.asked-to-end-first"
_ROUTINE: Final = frozenset({"changes.other", "changes.agents"})  # reported of every node all day
# Judgement: a process that meets a fault reports it within this time, in seconds.
_AT_ONCE_S: Final = 120.0


def judge(
    events: Sequence[EventSeen], recoveries: Iterable[EventSeen], job: JobSeen, *, explained: int | None = None
) -> list[Judgement]:
    """Whether each event may have begun the failure.

    Args:
        events: the events in question.
        recoveries: the events of the case that may report recoveries or concern others; those in question may be
            among them. Read only where an event is not set aside without them.
        job: what log and scheduler show of the job.
        explained: of so many events that are set aside, the first ones, the reason is that of the first question whose
            answer is against them. The others are asked the cheapest question first. None: of all.
    """
    companions, fits = Companions(recoveries, job), _Fits(job)
    found: list[Candidate] = []
    left = len(events) if explained is None else explained
    for event in events:
        one = Candidate(event, rules_of(event.entries), fits.of)
        if left <= 0:
            one.reason = _reason_after_recovery(one, job)  # sets it aside whether or not it recovered
        if one.reason is None:
            one.reason = reason_against(one, companions, job) or companions.reason(one)
            may_be_used = one.reason is None or (
                one.reason is Reason.RECOVERED and _reason_after_recovery(one, job) is None
            )
            left -= not may_be_used
        found.append(one)
    _withdraw_recoveries(found, job)
    _credit_changes(found)
    _keep_best(found, job)
    return _with_causes(found, companions, job)


class _Fits:
    """How well log and scheduler of a job fit events."""

    def __init__(self, job: JobSeen) -> None:
        self._job = job
        general = waits()
        lines = [entries for entries in job.own_entries if entries.isdisjoint(general)]
        self._has_own_failure = bool(lines)
        self._own = frozenset().union(*lines) - general
        self._others = job.other_entries - general
        self._is_unanswered = not job.other_entries.union(*job.own_entries).isdisjoint(unanswered())

    def of(self, one: Candidate) -> Fit:
        return self._of_change(one) if "changes" in one.traits.effects else self._of_event(one)

    def _of_event(self, one: Candidate) -> Fit:
        job = self._job
        explained = explained_by(one.event.entries)
        is_explained = not self._own.isdisjoint(explained)
        is_named = job.names_processes and any(map(job.knows_process, one.objects.pids))
        if is_explained or is_named or self._shows_at_once(one):
            return Fit.LINE
        if _slowed_the_job(one, job) or _is_of_late_node(one, job):
            return Fit.SLOWER
        if _stopped_its_log(one, job):
            return Fit.LINE
        if any(job.status in rule.status for rule in one.rules):
            return Fit.SCHEDULER
        if self._has_own_failure and (self._own or self._others.isdisjoint(explained - consequences())):
            return Fit.NONE
        return self._by_other_processes(one, explained)

    def _by_other_processes(self, one: Candidate, explained: frozenset[str]) -> Fit:
        """How well what processes say of others fits an event, where none reports a known failure of its own."""
        job = self._job
        ports = [rule for rule in one.rules if rule.object == "port"] if self._is_unanswered else []
        ends_port = any(rule.effect in {"ends", "stalls"} for rule in ports)
        # That a whole node is gone says more than that a peer is: no event of another kind explains it.
        is_lost_node = not (job.other_entries & nodes_lost()).isdisjoint(explained)
        if ends_port or is_lost_node or not self._others.isdisjoint(explained):
            return Fit.LINE
        if COLLECTIVES_DIFFER in job.other_entries:
            return Fit.NONE  # ranks that call different collectives wait for one another, and for no event
        effects = {rule.effect for rule in one.rules if rule.object != "service"}
        shows = (job.waits and "ends" in effects) or (job.timed_out and "stalls" in effects)
        # A port that has errors may lose a connection; a program that ended loses it as well.
        return Fit.WAITS if ports or (job.several and shows) else Fit.NONE

    def _of_change(self, one: Candidate) -> Fit:
        if raises_limit(one.event.text, one.event.entries):
            return Fit.NONE
        if self._is_of_changed(one) or self._asked_to_end_then(one):
            return Fit.LINE
        if _slowed_the_job(one, self._job):
            return Fit.SLOWER
        if not one.traits.stalls:
            return Fit.NONE
        return Fit.WAITS if self._stopped_then(one) or self._never_began(one) else Fit.NONE

    def _asked_to_end_then(self, one: Candidate) -> bool:
        """Whether a process was asked to end, for no other reason that is known, at once after a change of its node."""
        if _ASKED_TO_END not in self._own | self._others or _ROUTINE.issuperset(one.event.entries):
            return False
        return _is_at_once(one, self._job) and names_node_of(one, self._job)

    def _stopped_then(self, one: Candidate) -> bool:
        """Whether the processes made no progress from the moment on, and waited until a limit."""
        job, time = self._job, one.event.time
        if time is None or job.last_progress is None or self._has_own_failure or not job.timed_out:
            return False
        if not job.other_entries.isdisjoint(of_programs()):
            return False  # such as ranks that call different collectives
        stopped = job.last_progress if job.stalled is None else max(job.last_progress, job.stalled)
        return job.last_progress - READ_AHEAD_S <= time <= stopped + CLOCK_SKEW_S

    def _never_began(self, one: Candidate) -> bool:
        """Whether the job began after a change of one of its nodes, and waited until a limit before any progress."""
        job, time = self._job, one.event.time
        if time is None or job.started is None or job.last_progress is not None or time > job.started:
            return False
        if self._has_own_failure or not job.timed_out or not job.other_entries.isdisjoint(of_programs()):
            return False
        return bool(job.nodes) and names_node_of(one, job)

    def _shows_at_once(self, one: Candidate) -> bool:
        """Whether the log shows at once after an event what such an event, but also a program alone, may cause."""
        shown = self._own if self._has_own_failure else self._others
        if shown.isdisjoint(explained_at_once(one.event.entries)):
            return False
        return _is_at_once(one, self._job) or was_when_written(one, self._job)

    def _is_of_changed(self, one: Candidate) -> bool:
        """Whether the failure is what a change causes, or is about something that the change names."""
        shown = self._own if self._has_own_failure else self._own | self._others
        if not shown.isdisjoint(explained_by(one.event.entries)):
            return True
        named = explained_by_name(one.event.entries)
        shown = frozenset().union(*self._job.own_entries) if self._job.own_entries else self._job.other_entries
        if shown.isdisjoint(named):
            return False
        is_named = self._job.failure_names(one.objects.specific_names)
        return is_named or any(map(self._job.mentions, one.objects.new_versions))


def _is_at_once(one: Candidate, job: JobSeen) -> bool:
    """Whether the first line of failure comes at once after an event."""
    time, failed = one.event.time, job.failed_or_ended
    return time is not None and failed is not None and -CLOCK_SKEW_S <= failed - time <= _AT_ONCE_S


def _stopped_its_log(one: Candidate, job: JobSeen) -> bool:
    """Whether the logs of the event's node end with it without a word, long before other nodes show a failure."""
    time, failed, node = one.event.time, job.failed_or_ended, one.event.node
    if time is None or failed is None or node is None or one.traits.effects.isdisjoint({"ends", "stalls"}):
        return False
    if one.traits.objects.isdisjoint({"gpu", "port", "node"}):
        return False
    end = job.stopped().get(short_name(node))
    return end is not None and abs(time - end) <= _AT_ONCE_S <= failed - end


def _slowed_the_job(one: Candidate, job: JobSeen) -> bool:
    """Whether the steps of a job took longer since an event that may slow it down, or that stops a part of the node."""
    traits = one.traits
    may_slow = traits.slows or (traits.degrades_on and not traits.objects.isdisjoint({"port", "gpu"}))
    stops = not traits.effects.isdisjoint({"ends", "stalls"}) and not traits.objects.isdisjoint({"gpu", "port", "node"})
    stops = stops and not of_redundant_parts().issuperset(one.event.entries)  # the node goes on as before
    is_own_change = "changes" in traits.effects and names_node_of(one, job)
    if one.event.time is None or not (may_slow or stops or is_own_change):
        return False
    if not job.timed_out and any(not entries.isdisjoint(of_programs()) for entries in job.own_entries):
        return False  # it failed of an error of its program, slow or not
    if "changes" not in traits.effects and short_name(one.event.node or "") in job.slow_nodes():
        return True
    since = job.slowed()
    if since is None or not _stayed_slow(since, job):
        return False
    # A change comes before what it causes; monitors report a state with delay.
    earliest = -CLOCK_SKEW_S if "changes" in traits.effects else -_SLOWER_WITHIN_S
    if not may_slow:
        latest = _SLOWER_CHANGED_S if is_own_change else _SLOWER_AT_ONCE_S
        return -_SLOWER_AT_ONCE_S <= since - one.event.time <= latest
    return earliest <= since - one.event.time <= _SLOWER_WITHIN_S


def _is_of_late_node(one: Candidate, job: JobSeen) -> bool:
    """Whether an event that slows a node down is of the one for which the others waited, and not of before the job."""
    time, may_slow = one.event.time, one.traits.slows and "node" in one.traits.objects
    if not may_slow or time is None or job.started is None or time < job.started - _SLOWER_WITHIN_S:
        return False
    return job.timed_out and short_name(one.event.node or "") in job.late_nodes()


def _stayed_slow(since: float, job: JobSeen) -> bool:
    """Whether a job was slow for so long that something of its platform may be why, not a single step."""
    end = max((time for time in (job.last_progress, job.failed_or_ended) if time is not None), default=None)
    return end is None or end - since >= _SLOW_FOR_S


def _withdraw_recoveries(found: Sequence[Candidate], job: JobSeen) -> None:
    """An object that fails again after it recovered has not recovered: its last failure supports the earlier ones."""
    for one in found:
        if one.reason is Reason.RECOVERED:
            again = (
                other
                for other in found
                if other.reason is None
                and other.event.node == one.event.node
                and comes_before(one.event, other.event)
                and one.objects.shares(other.objects)
            )
            if any(again):
                one.reason = _reason_after_recovery(one, job)


def _credit_changes(found: Sequence[Candidate]) -> None:
    """Let a change count that names what a later event of the same node names, that log or scheduler support."""
    trouble = [one for one in found if one.reason is None and one.fit and "changes" not in one.traits.effects]
    for one in found:
        if one.reason in {Reason.NO_TRACE, Reason.NOT_SHOWN} and "changes" in one.traits.effects:
            met = [other.fit for other in trouble if _meets(one, other)]
            if met:
                one.reason, one.credit = None, max(met)


def _meets(change: Candidate, other: Candidate) -> bool:
    """Whether another event is about something that a change before it names, which is no node."""
    shared = change.objects.specific_names & other.objects.specific_names
    of_node = {short_name(one.event.node) for one in (change, other) if one.event.node is not None}
    is_trouble = "changes" not in other.traits.effects
    return is_trouble and comes_before(change.event, other.event) and not shared <= of_node


def _reason_after_recovery(one: Candidate, job: JobSeen) -> Reason | None:
    """The reason against an event whose recovery does not count."""
    return asks_time(one, job) or asks_log(one, job)


def _keep_best(found: Sequence[Candidate], job: JobSeen) -> None:
    """Of several events, keep those with most support.

    Where nothing but the time supports them, keep what happened when the run stopped.
    """
    used = [one for one in found if one.reason is None]
    if not used:
        return
    known = [one for one in used if not is_of_silent_node(one, job)]
    if known:  # a node whose logs are missing may as well be of another job
        for one in used:
            if is_of_silent_node(one, job):
                one.reason = Reason.OTHER_NODE
        used = known
    best = max(one.fit for one in used)
    others = [one for one in used if one.fit >= Fit.SLOWER and "changes" not in one.traits.effects]
    for one in used:
        if one.fit < best or ("changes" in one.traits.effects and not _explains_all(one, others)):
            one.reason = Reason.NO_TRACE
    stopped = job.last_progress if job.last_progress is not None else job.failed_or_ended
    if best > Fit.WAITS or stopped is None:
        return
    used = [one for one in used if one.reason is None and one.event.time is not None]
    if used:
        nearest = min(abs((one.event.time or 0.0) - stopped) for one in used)
        for one in used:
            if abs((one.event.time or 0.0) - stopped) > nearest + BESIDE_S:
                one.reason = Reason.NO_TRACE


def _explains_all(change: Candidate, others: Sequence[Candidate]) -> bool:
    """Whether a change explains the other events that the log supports."""
    return all(map(partial(_is_explained, change), others))


def _is_explained(change: Candidate, other: Candidate) -> bool:
    return not explained_by(change.event.entries).isdisjoint(other.event.entries) or _meets(change, other)


def _with_causes(found: Sequence[Candidate], companions: Companions, job: JobSeen) -> list[Judgement]:
    """The judgements, in which the cause of an event that is used is used as well."""
    used = [one for one in found if one.reason is None]
    judged = {one.event.index: _judgement(one, found, job) for one in found}
    for one in sorted(found, key=_latest_first):  # the cause of a cause last
        effects = effects_of(one, used)
        if not effects:
            continue
        if one.reason is not None:
            if not speaks_for(one, effects, companions, job):
                continue
            one.reason = None
            used.append(one)
            judged[one.event.index] = Judgement(one.event.index, support=judged[effects[0].event.index].support)
        judged[one.event.index].leads = tuple(effect.event.index for effect in effects)
    _set_aside_changes_of_other_cause(used, judged)
    return [judged[one.event.index] for one in found]


def _set_aside_changes_of_other_cause(used: Sequence[Candidate], judged: dict[int, Judgement]) -> None:
    """Set aside a change for whose effects trouble of their own node is known, which the change does not explain."""
    causes = [one for one in used if "changes" not in one.traits.effects and judged[one.event.index].leads]
    for change in used:
        if "changes" not in change.traits.effects or not causes:
            continue
        explained = explained_by(change.event.entries)
        effects = [one for one in used if one is not change and not explained.isdisjoint(one.event.entries)]
        places = {one.event.index for one in effects}
        others = [one for one in causes if not places.isdisjoint(judged[one.event.index].leads)]
        if others and not any(map(partial(_is_explained, change), others)):
            judged[change.event.index] = Judgement(change.event.index, reason=Reason.NO_TRACE)


def _latest_first(one: Candidate) -> tuple[float, int]:
    return -one.event.time if one.event.time is not None else 0.0, -one.event.index


def _judgement(one: Candidate, all_of_them: Sequence[Candidate], job: JobSeen) -> Judgement:
    if one.reason is not None:
        return Judgement(one.event.index, reason=one.reason)
    if one.fit is Fit.LINE:
        support = Support.LOG
    elif one.fit is Fit.SLOWER:
        support = Support.SLOWER
    elif one.fit is Fit.SCHEDULER:
        support = Support.SCHEDULER
    elif one.fit is Fit.WAITS and _is_when_stopped(one, job):
        support = Support.TIME
    elif any(_is_second_source(one, other) for other in all_of_them):
        support = Support.SECOND_SOURCE
    else:
        support = Support.ALONE
    of_change = "changes" in one.traits.effects
    met = [other.event.index for other in all_of_them if of_change and other.reason is None and _meets(one, other)]
    return Judgement(one.event.index, support=support, explains=tuple(met))


def _is_when_stopped(one: Candidate, job: JobSeen) -> bool:
    """Whether it is known that the processes of the job stopped or waited from the time of an event on."""
    if one.event.time is None:
        return False
    if job.last_progress is not None or any(rule.before_logs for rule in one.rules):
        return True  # its time was compared with the progress; the others waited for what it kept from starting
    return job.stalled is not None and abs(one.event.time - job.stalled) <= BUFFERED_S


def _is_second_source(one: Candidate, other: Candidate) -> bool:
    """Whether another source reports the same of the same node."""
    return (
        other.reason is None
        and other.event.source != one.event.source
        and other.event.node == one.event.node
        and any(rule in other.rules for rule in one.rules)
    )
