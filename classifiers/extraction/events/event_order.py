"""The order of node events that are evidence and of the lines and events that they explain."""

from collections.abc import Mapping, Sequence
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import time_of
from classifiers.relevance.event_candidates import Judgement, MatchedEvent, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.event_places import CLOCK_SKEW_S
from classifiers.relevance.event_rules import explained_at_once, explained_by, explained_by_name, leads_to, traits_of
from classifiers.relevance.words_in_text import is_word_in

_LEADING: Final = frozenset({"ends", "stalls", "changes"})  # effects of events that come before what they explain
_TRACES: Final = frozenset({"follows"})  # of events that only repeat what a process reports itself
# By how much an event is put before a line that it explains, and which part of their distance events keep among
# themselves: both smaller than any difference of two times in logs.
_JUST_BEFORE_S: Final = 0.001
_ORDER_KEPT: Final = 1e-9


def put_causes_first(
    used: Sequence[EvidenceItem],
    seen: Mapping[int, MatchedEvent],
    of_logs: Sequence[EvidenceItem],
    judgements: Mapping[int, Judgement],
) -> None:
    """Let the events that are used come before what they explain: lines, and other events that a change explains."""
    for item in used:
        event, judgement = seen[item.offset], judgements[item.offset]
        _put_before_explained_lines(item, event, of_logs, judgement.support)
        if traits_of(event.entries).effects == _TRACES and judgement.support is Support.LOG:
            item.role = "cascade" if item.role == "initiating" else item.role
        for other in used:
            if other.offset in judgement.explains and other.role == "initiating":
                other.role = "cascade"
        if "changes" in traits_of(event.entries).effects and judgement.support is Support.LOG:
            explained = explained_by(event.entries) - frozenset(event.entries)
            _demote_explained([one for one in [*of_logs, *used] if one is not item], explained)

    _put_before_effects(used, judgements)
    for item in used:
        judgement = judgements[item.offset]
        is_shown = judgement.leads or judgement.support in {Support.LOG, Support.SCHEDULER, Support.TIME}
        if item.role == "initiating" and is_shown:
            _demote_reports_of_effects(leads_to(seen[item.offset].entries), of_logs)


def _put_before_effects(used: Sequence[EvidenceItem], judgements: Mapping[int, Judgement]) -> None:
    """Let the events that others caused be their consequences."""
    latest_first = sorted(used, key=lambda item: -(item.time or 0.0))  # an effect may be a cause itself
    begins = {item.offset: item for item in latest_first if item.role == "initiating"}
    pairs = [
        (cause, begins[effect])
        for cause in begins.values()
        for effect in judgements[cause.offset].leads
        if effect in begins
    ]
    for cause, effect in pairs:
        cause.onset = min(cause.onset, effect.onset)
        if cause.time is not None and effect.time is not None:
            cause.time = min(cause.time, effect.time - _JUST_BEFORE_S)
    for _, effect in pairs:
        effect.role = "cascade"


def _demote_reports_of_effects(effects: frozenset[str], of_logs: Sequence[EvidenceItem]) -> None:
    """Make consequences of the lines that report what an event caused, as the log and the scheduler do too."""
    for line in of_logs:
        begins = [hit.id for hit in line.hits if hit.role == "initiating"]
        if line.role == "initiating" and begins and effects.issuperset(begins):
            line.role = "cascade"


def _demote_explained(items: Sequence[EvidenceItem], explained: frozenset[str]) -> None:
    """Make consequences of what a change explains, and of what the same process says after it."""
    first: dict[int, int] = {}
    for one in items:
        if any(hit.id in explained for hit in one.hits):
            first[one.stream] = min(one.offset, first.get(one.stream, one.offset))
    for one in items:
        begin = first.get(one.stream)
        if begin is not None and one.line_number is not None and one.role == "initiating" and one.offset >= begin:
            one.role = "cascade"


def _put_before_explained_lines(
    item: EvidenceItem, event: MatchedEvent, of_logs: Sequence[EvidenceItem], support: Support | None
) -> None:
    """Let an event come before the lines that it explains: a cause comes before its effects, whatever clocks say."""
    slower = support is Support.SLOWER
    at_once = explained_at_once(event.entries)
    leads = slower or bool(at_once) or not traits_of(event.entries).effects.isdisjoint(_LEADING)
    if item.role != "initiating" or not leads:
        return
    explained = explained_by(event.entries) | explained_by_name(event.entries) | at_once
    pids = [f"pid{between}{pid}" for pid in read_objects(event.text).pids for between in (" ", ": ", "=")]
    for line in of_logs:
        of_its_process = any(is_word_in(pid, line.text) for pid in pids)
        if line.role == "initiating" and (slower or of_its_process or any(hit.id in explained for hit in line.hits)):
            item.onset = min(item.onset, line.onset)
            if item.time is not None and line.time is not None and line.time <= item.time:
                # A line without a time of its own has that of a line before it, which may be hours earlier.
                is_at_once = item.time <= line.time + CLOCK_SKEW_S or time_of(line.text) is None
                # Several events keep their order.
                before = line.time - _JUST_BEFORE_S + (item.time - line.time) * _ORDER_KEPT
                item.time = before if is_at_once else item.time
