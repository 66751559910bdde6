"""Judges a case's node events: collects what logs and scheduler show, and sets aside what did not begin the failure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction import benign_lines, training_progress
from classifiers.extraction.clocks import ClockOfLogs
from classifiers.extraction.demotion import survival
from classifiers.extraction.events.event_order import put_causes_first
from classifiers.extraction.events.read_events import NodeHit, ReadEvent, causes_of
from classifiers.extraction.evidence_items import STRENGTH_ORDER, EvidenceItem
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_shapes import is_overcome
from classifiers.extraction.observations.silence import stalled_since
from classifiers.extraction.observations.slow_nodes import late_nodes, slow_nodes
from classifiers.extraction.observations.slowdown import slowed_between
from classifiers.extraction.onset import Onset
from classifiers.extraction.stream_reader import StreamText
from classifiers.node_names import short_name
from classifiers.observation_names import OBSERVATIONS
from classifiers.relevance import node_events
from classifiers.relevance.event_candidates import PROCESS_FORMS, JobEvidence, Judgement, MatchedEvent, Reason, Support
from classifiers.relevance.event_places import CLOCK_SKEW_S
from classifiers.relevance.event_times import CLOCK_BROKEN_S
from classifiers.relevance.own_names import are_pods_of, nodes_of_pods, own_names, own_numbers, pods_that_began
from classifiers.relevance.own_nodes import FRONT_OF_LOG, own_nodes
from classifiers.relevance.words_in_text import is_word_in
from classifiers.report_detection import is_prose

# Schedulers that give their jobs names, not the numbers that batch systems give.
_WITHOUT_NUMBERS: Final = frozenset({"kubernetes", "kueue", "volcano", "ray", "sagemaker", "vertex", "azureml"})
_FOLLOWING: Final = 400  # characters after a line of failure that tell what it is about (judgement)
MOST_SET_ASIDE: Final = 6  # node events that are shown though they are no evidence (judgement)
_USED_PORTS: Final = re.compile(
    r"NET/(?:IB|Socket) ?: Using ([^\n]{1,300})|NCCL_(?:SOCKET_IFNAME"
    r"|IB_HCA)[= ](?:set by environment to )?([\w,:]{2,100})|GLOO_SOCKET_IFNAME=([\w,]{2,60})"
)
_PORT_NAME: Final = re.compile(r"\b(mlx5_(?:bond_)?\d{1,2}|(?:eno|enp|ens|eth|ib|ibp|ibs|bond|hsn)\d\w{0,14})\b")
# Linux, drivers/net/bonding: what the kernel says of a member of a bond.
_MEMBER: Final = re.compile(r"\b(?P<bond>bond\d{1,3}): \(slave (?P<member>\w{1,15})\)")
_VISIBLE_GPUS: Final = re.compile(r"\b(?:CUDA|ROCR|HIP)_VISIBLE_DEVICES[=:] ?\[?'?(\d{1,2}(?:,\d{1,2}){0,15})\b")
_ABSOLUTE: Final = re.compile(r"(?<![\w.])/[\w.@%+=-]{1,120}/[\w.@%+=-]")  # a path that tells on which disk it is
# A launcher's last word on pods that it waits for says nothing of why they do not come.
_WAITS: Final = re.compile(
    r"(?i)\bwait(?:ing|s|ed)?\b|\bpending\b|\b(?:pods?|workers?|replicas?) (?:are )?(?:running|ready)\b"
)
# Judgement: the weight from which a cause counts of an entry of the job's own lines, which need not rule it out.
_POSSIBLE: Final = 0.05
_FEW_LINES: Final = 3  # of a log that shows nothing but them (judgement)

_REPORTERS: Final = ("srun: ", "slurmstepd: ", "slurmd", "mpirun", "mpiexec", "prterun")


def judge_node_events(
    raw: RawCase,
    streams: Sequence[StreamText],
    items: Sequence[EvidenceItem],
    events: Sequence[ReadEvent],
    hits: Sequence[NodeHit],
    attributions: Sequence[LineAttribution | None],
    classify: Callable[[EvidenceItem], None],
    present: AbstractSet[str] = frozenset(),
) -> tuple[list[EvidenceItem], list[EvidenceItem]]:
    """Separate the node events that have nothing to do with the failure from the others.

    Args:
        raw: the case.
        streams: its texts.
        items: the evidence items of its logs and files.
        events: its node events.
        hits: those that the catalogue knows.
        attributions: who printed which line, by stream.
        classify: finds role and onset of a node event; most are set aside without.
        present: the entries and observations of the logs.

    Returns:
        The items with those of the other events, and of the events that are set aside the first ones, each with the
        reason.
    """
    # Serious words first: of what is set aside, a reader wants to know of these.
    suspects = _most_serious_first(hits)
    used: list[EvidenceItem] = []
    set_aside: list[EvidenceItem] = []
    judgements: dict[int, Judgement] = {}
    if suspects:
        clock = ClockOfLogs(raw, streams)
        job = _job_evidence(raw, streams, items, attributions, clock, present)
        if _are_of_another_clock(raw, clock, job):
            clock.forget()
        seen = _MatchedEvents(raw, clock, events, suspects)
        matched = [seen.at(hit.index) for hit in suspects]
        judged = node_events.judge(matched, seen.all(), job, explained=MOST_SET_ASIDE)
        for hit, event, judgement in zip(suspects, matched, judged, strict=True):
            reason = judgement.reason
            if reason is not None and len(set_aside) >= MOST_SET_ASIDE:
                continue
            item = hit.item(len(streams))
            if reason is None:
                classify(item)
                item.time = event.time if raw.node_events[hit.index].at is not None else time_of(item.text)
            if reason is None and item.role == "context" and judgement.support in {Support.ALONE, Support.TIME}:
                reason = Reason.NO_TRACE  # it begins nothing, and nothing else fits it
            if reason is not None:
                item.role, item.onset, item.set_aside = "context", Onset.NEUTRAL, reason.value
                set_aside.append(item)
            else:
                item.uncorroborated = judgement.support is Support.ALONE
                judgements[item.offset] = judgement
                used.append(item)
        put_causes_first(used, {item.offset: seen.at(item.offset) for item in used}, items, judgements)
    if not used and sum(bool(one.text) for one in raw.streams) <= 1:
        for item in items:  # the places in the one log are order enough, as without any event
            item.time = None
    return [*items, *used], set_aside


def _most_serious_first(hits: Sequence[NodeHit]) -> list[NodeHit]:
    """The events in order of their seriousness, those that are alike as they were given."""
    by_seriousness: list[list[NodeHit]] = [[] for _ in range(len(STRENGTH_ORDER) + 1)]
    for hit in hits:
        by_seriousness[hit.entries.seriousness].append(hit)
    return [hit for some in by_seriousness for hit in some]


class _MatchedEvents:
    """The node events of a case as they are judged; each is made once."""

    def __init__(
        self, raw: RawCase, clock: ClockOfLogs, read: Sequence[ReadEvent], suspects: Sequence[NodeHit]
    ) -> None:
        self._events = raw.node_events
        self._clock = clock
        self._read = read
        self._entries = {one.index: one.entries for one in suspects}
        self._made: dict[int, MatchedEvent] = {}
        # By how much the clock is ahead of a node, or of a source of its events such as its management controller.
        self._offsets: dict[tuple[str | None, str | None], float] = {}
        for index, one in enumerate(read):
            if one.ahead_s is not None:
                event = raw.node_events[index]
                self._offsets[event.node, event.source] = one.ahead_s

    def at(self, index: int) -> MatchedEvent:
        """The event at a place among those of the case."""
        made = self._made.get(index)
        if made is None:
            one, entries = self._events[index], self._entries.get(index)
            node, source = one.node, one.source
            time = self._clock.of(one.at)
            if time is not None:
                time -= self._read[index].blocked_s
            if time is not None and self._offsets:
                time -= self._offsets.get((node, source), 0.0)
            if entries is None:
                made = MatchedEvent(index, one.text, node, source, time, ())
            else:
                made = MatchedEvent(index, one.text, node, source, time, entries.ids, entries.causes)
            self._made[index] = made
        return made

    def all(self) -> Iterator[MatchedEvent]:
        """All events."""
        return map(self.at, range(len(self._events)))


def _are_of_another_clock(raw: RawCase, clock: ClockOfLogs, job: JobEvidence) -> bool:
    """Whether all events are so much later than the job's end that their clock is set otherwise."""
    if job.ended is None:
        return False
    latest, is_known = job.ended + CLOCK_BROKEN_S, False
    for one in raw.node_events:  # the first one answers nearly always
        time = clock.of(one.at)
        if time is not None and time <= latest:
            return False
        is_known = is_known or time is not None
    return is_known


def _job_evidence(
    raw: RawCase,
    streams: Sequence[StreamText],
    of_logs: Sequence[EvidenceItem],
    attributions: Sequence[LineAttribution | None],
    clock: ClockOfLogs,
    present: AbstractSet[str],
) -> JobEvidence:
    own = [item for item in of_logs if _is_own_failure(item)]
    others = [item for item in of_logs if item.onset < Onset.DEMOTED]
    of_failure = [item for item in of_logs if _is_failure(item)]
    texts = [one.text for one in streams if not one.is_scheduler]
    # Only times that the lines give themselves: that of a line before is often hours earlier.
    times = [time for item in of_failure if (time := time_of(item.text)) is not None]
    started = _latest([clock.of(raw.job.started_at), *map(survival.last_attempt_since, texts)])
    last_progress = [
        time for one in attributions if one is not None and (time := one.progress_lines.last_time()) is not None
    ] or [time for text in texts if (time := training_progress.last_step_time(text)) is not None]
    own_of = own_nodes(raw.job, texts)
    nodes = own_of.names
    # What was around the lines names pods as well.
    written = [*texts, *(one.text for one in raw.streams)] if any(one.source.is_unwrapped for one in streams) else texts
    mentions = cache(lambda name: any(is_word_in(name, text) for text in written))
    job_names = cache(lambda: own_names(raw.job, written, raw.node_events))
    is_own = partial(are_pods_of, job_id=raw.job.job_id, mentions=mentions, job_names=job_names)
    return JobEvidence(
        nodes=nodes,
        nodes_as_written=_in_capitals(raw.job.nodes),
        job_id=raw.job.job_id,
        status=raw.job.status,
        own_entries=[_telling_entries(item) for item in own],
        other_entries=frozenset(hit.id for item in others for hit in item.hits) | (present & OBSERVATIONS),
        started=started,
        last_progress=max(last_progress, default=None) if clock.is_aligned else None,
        latest_progress=cache(lambda: _latest_progress(attributions)) if clock.is_aligned else lambda: None,
        failed=_first_since(started, times) if clock.is_aligned else None,
        stalled=stalled_since(raw, streams, of_logs, present, clock.of(raw.job.ended_at)) if clock.is_aligned else None,
        slowed=cache(lambda: _slowed_since(texts)) if clock.is_aligned else lambda: None,
        slowed_between=cache(lambda: next(filter(None, map(slowed_between, texts)), None)),
        slow_nodes=cache(lambda: slow_nodes([one for one in streams if not one.is_scheduler], nodes)),
        late_nodes=cache(lambda: late_nodes(streams, attributions)),
        ended=clock.of(raw.job.ended_at),
        mentions=mentions,
        job_names=job_names,
        job_numbers=cache(lambda: own_numbers(raw.job, written)),
        of_batch_system=raw.job.scheduler not in _WITHOUT_NUMBERS,
        owners=frozenset({raw.job.user.lower()} if raw.job.user else ()),
        several=len(nodes) > 1
        or (raw.job.gpus or 0) > 1
        or len({one.rank for one in raw.streams}) > 1
        or any(one is not None and one.has_several_ranks for one in attributions),
        ports=_with_members({name for text in texts for name in _used_ports(text)}, raw),
        gpus=frozenset(index for text in texts for index in _visible_gpus(text)) if len(nodes) <= 1 else frozenset(),
        failed_nodes=_nodes_of(own, streams),
        failure_text=cache(lambda: "\n".join(_text_from(item, streams) for item in own or others if item.line_number)),
        has_more_nodes=own_of.more,
        names_paths=any(_ABSOLUTE.search(one.text) is not None for one in own),
        nodes_with_logs=frozenset(short_name(one.source.node) for one in streams if one.source.node and one.text),
        pod_nodes=cache(lambda: nodes_of_pods(raw.node_events, is_own)),
        pods_that_began=cache(lambda: pods_that_began(raw.node_events)),
        own_causes=causes_of((hit for item in own for hit in item.hits), _POSSIBLE),
        worked_before=raw.good_run is not None,
        names_processes=any(form in text for text in written for form in PROCESS_FORMS),
        ends_in_words=any(_ends_in_words(one, of_logs, own) for one, own in zip(streams, attributions, strict=True)),
    )


def _in_capitals(nodes: Iterable[str]) -> frozenset[str]:
    """Names of nodes without their domains, of those with capitals; not those that are written as a device is: GPU7."""
    names = (name[: len(short_name(name))] for name in nodes)
    return frozenset(name for name in names if name != name.lower() and not name.startswith("GPU"))


def _latest_progress(attributions: Sequence[LineAttribution | None]) -> float | None:
    return _latest(one.progress_lines.latest_time() for one in attributions if one is not None)


def _latest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _first_since(started: float | None, times: Sequence[float]) -> float | None:
    """The first time of a failure since the job started: logs of the platform's own daemons begin before it."""
    of_job = [time for time in times if started is None or time >= started - CLOCK_SKEW_S]
    return min(of_job or times, default=None)


def _nodes_of(items: Iterable[EvidenceItem], streams: Sequence[StreamText]) -> frozenset[str]:
    """Short names of the nodes that printed some lines, none where these may be of several nodes."""
    found: set[str] = set()
    for item in items:
        source = streams[item.stream].source
        if source.rank is None or source.node is None or item.message.lstrip().startswith(_REPORTERS):
            return frozenset()  # a launcher reports what other nodes say
        found.add(short_name(source.node))
    return frozenset(found)


def _text_from(item: EvidenceItem, streams: Sequence[StreamText]) -> str:
    """A line and what follows it."""
    return streams[item.stream].text[item.offset : item.offset + len(item.text) + _FOLLOWING]


def _ends_in_words(stream: StreamText, of_logs: Sequence[EvidenceItem], attribution: LineAttribution | None) -> bool:
    """Whether a log without progress ends in words of its own about the failure, which no catalogue entry knows.

    They are a complaint, what a person wrote, or the only few lines of the log; start-up output and notices are not.
    """
    if stream.is_scheduler or attribution is None or attribution.progress_lines.last_offset():
        return False
    text = stream.text.rstrip()
    begin = text.rfind("\n") + 1
    line = text[begin:]
    if not line or training_progress.step_of(line) is not None or benign_lines.is_benign(line) or _WAITS.search(line):
        return False
    if is_overcome(line):
        return False
    own = [item for item in of_logs if item.stream == stream.index]
    last = [item for item in own if item.offset >= begin]
    if any(item.hits or item.role in {"cascade", "teardown"} for item in last):
        return False
    is_all = text.count("\n") < _FEW_LINES and len(own) == sum(not item.from_scheduler for item in of_logs)
    return is_all or is_prose(line) or any(item.role == "initiating" for item in last)


def _slowed_since(texts: Sequence[str]) -> float | None:
    """Since when steps took several times as long as before in one of the logs, None if in none.

    Also None where a log says that each step had more work from then on.
    """
    if any(map(training_progress.has_more_work, texts)):
        return None
    found = (training_progress.slowed_since(text) for text in texts)
    return min((time for time in found if time is not None), default=None)


def _telling_entries(item: EvidenceItem) -> frozenset[str]:
    """The entries of a line that tell its cause: next to a decisive one, the others are but parts of its words."""
    decisive = frozenset(hit.id for hit in item.hits if hit.strength == "decisive" and hit.role == "initiating")
    return decisive or frozenset(hit.id for hit in item.hits)


def _is_own_failure(item: EvidenceItem) -> bool:
    """Whether a process reports a failure of its own by a line."""
    return (
        item.role == "initiating"
        and not item.from_scheduler
        and not item.reports_exit
        and item.onset < Onset.LIKELY_CONSEQUENCE
    )


def _is_failure(item: EvidenceItem) -> bool:
    """Whether a line is of the failure or of its consequences: no attempt that is made again, no general words."""
    if item.role == "cascade":
        return True
    return item.role == "initiating" and item.onset <= Onset.FIRST_CONSEQUENCE and item.onset is not Onset.RETRIED


def _used_ports(text: str) -> list[str]:
    if "NET/" not in text and "_IFNAME" not in text and "IB_HCA" not in text:
        return []
    found = _USED_PORTS.finditer(text, 0, FRONT_OF_LOG)
    return [name for hit in found for name in _PORT_NAME.findall(next(filter(None, hit.groups())).lower())]


def _with_members(ports: set[str], raw: RawCase) -> frozenset[str]:
    """Ports, and those that are members of a bond among them by what the nodes report of it."""
    if any(name.startswith("bond") for name in ports):
        members = (hit for one in raw.node_events if "slave" in one.text for hit in _MEMBER.finditer(one.text))
        return frozenset(ports | {hit["member"] for hit in members if hit["bond"] in ports})
    return frozenset(ports)


def _visible_gpus(text: str) -> list[int]:
    if "VISIBLE_DEVICES" not in text:
        return []
    return [int(one) for hit in _VISIBLE_GPUS.finditer(text, 0, FRONT_OF_LOG) for one in hit[1].split(",")]
