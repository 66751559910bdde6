"""Which node events may have begun a failure. Pure: the same observations give the same answers.

A node's message is a suspect, not a cause: nodes always emit corrected errors, flapping ports that nobody uses, and
yesterday's repairs. So each event has to pass questions. An answer against it sets it aside, with the reason that a
page shows. What is left is used where the log shows something that such an event explains (event_rules.toml), where the
scheduler confirms it, or where the log shows no failure of its own.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from classifiers.node_names import short_name
from classifiers.relevance.event_candidates import Candidate, Fit, JobEvidence, Judgement, MatchedEvent, Reason, Support
from classifiers.relevance.event_chains import effects_of, is_supported_by_effects
from classifiers.relevance.event_exclusion import BESIDE_S, EventsOfNode, exclusion_by_log, exclusion_of
from classifiers.relevance.event_fit import EventFit
from classifiers.relevance.event_places import is_of_silent_node
from classifiers.relevance.event_rules import (
    MANY_AFFECTED,
    explained_by,
    leads_to,
    rules_of,
)
from classifiers.relevance.event_times import (
    BUFFERED_S,
    comes_before,
    exclusion_by_time,
)


def judge(
    events: Sequence[MatchedEvent],
    others: Iterable[MatchedEvent],
    job: JobEvidence,
    *,
    explained: int | None = None,
) -> list[Judgement]:
    """Whether each event may have begun the failure.

    Args:
        events: the events in question.
        others: all events of the case, those in question among them. Read only where an event is not set aside
            without them.
        job: what log and scheduler show of the job.
        explained: of so many events that are set aside, the first ones, the reason is that of the first question whose
            answer is against them. The others are asked the cheapest question first. None: of all.
    """
    events_of_node, fits = EventsOfNode(others, job), EventFit(job)
    found: list[Candidate] = []
    left = len(events) if explained is None else explained
    for event in events:
        one = Candidate(event, rules_of(event.entries), fits.of)
        if left <= 0:
            one.reason = _reason_after_recovery(one, job)  # sets it aside whether or not it recovered
        if one.reason is None:
            one.reason = exclusion_of(one, events_of_node, job) or events_of_node.reason(one)
            left -= one.reason is not None
        found.append(one)
    _credit_changes(found)
    _keep_best(found, job)
    return _with_causes(found, events_of_node, job)


def _credit_changes(found: Sequence[Candidate]) -> None:
    """Let a change count that names what a later event of the same node names, that log or scheduler support."""
    trouble = [one for one in found if one.reason is None and one.fit and "changes" not in one.traits.effects]
    if not trouble:
        return
    for one in found:
        if "changes" in one.traits.effects and one.reason in {Reason.NO_TRACE, Reason.NOT_SHOWN}:
            met = [other.fit for other in trouble if _meets(one, other)]
            if met:
                one.reason, one.credit = None, max(met)


def _meets(change: Candidate, other: Candidate) -> bool:
    """Whether another event is about something that a change before it names, which is no node."""
    shared = change.objects.specific_names & other.objects.specific_names
    of_node = {short_name(one.event.node) for one in (change, other) if one.event.node is not None}
    is_trouble = "changes" not in other.traits.effects
    return is_trouble and comes_before(change.event, other.event) and not shared <= of_node


def _reason_after_recovery(one: Candidate, job: JobEvidence) -> Reason | None:
    """The reason against an event whose recovery does not count."""
    return exclusion_by_time(one, job) or exclusion_by_log(one, job)


def _keep_best(found: Sequence[Candidate], job: JobEvidence) -> None:
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
    trouble = (one for one in used if "changes" not in one.traits.effects and MANY_AFFECTED not in one.event.entries)
    others = [one for one in trouble if one.fit >= Fit.SLOWER]
    for one in used:
        if one.fit < best or ("changes" in one.traits.effects and not _explains_all(one, others)):
            one.reason = Reason.NO_TRACE
    times = (job.last_progress, job.stalled, job.failed_or_ended)
    stopped = next((time for time in times if time is not None), None)
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


def _with_causes(found: Sequence[Candidate], events_of_node: EventsOfNode, job: JobEvidence) -> list[Judgement]:
    """The judgements, in which the cause of an event that is used is used as well."""
    used = [one for one in found if one.reason is None]
    judged = {one.event.index: _judgement(one, found, job) for one in found}
    causes = [one for one in found if leads_to(one.event.entries)] if used else []
    for one in sorted(causes, key=_latest_first):  # the cause of a cause last
        effects = effects_of(one, used)
        if not effects:
            continue
        if one.reason is not None:
            if not is_supported_by_effects(one, effects, events_of_node, job):
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


def _judgement(one: Candidate, all_of_them: Sequence[Candidate], job: JobEvidence) -> Judgement:
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


def _is_when_stopped(one: Candidate, job: JobEvidence) -> bool:
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
