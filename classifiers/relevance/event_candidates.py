"""The records of judging node events: an event and the evidence of its job, and what is found."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from classifiers.node_names import short_name
from classifiers.relevance.entry_groups import peer_lost, start_timeouts, wait_timeouts
from classifiers.relevance.event_objects import EventObjects, read_objects
from classifiers.relevance.event_rules import EventRule, EventTraits, traits_of
from classifiers.relevance.words_in_text import is_whole_word_in

# NCCL's net_ib.cc and UCX's ib_mlx5_log.c: the device of this node whose transfer failed.
_NAMED_PORT: Final = re.compile(r"\bhca (mlx5_(?:bond_)?\d{1,2})\b|\b(mlx5_(?:bond_)?\d{1,2}):\d{1,2}/(?:IB|RoCE)\b")
_NAMED_GPU: Final = re.compile(r"\b(?:GPU|gpu|[Dd]evice|cuda)(?:[ :#=]|: |=\[)(?P<index>\d{1,2})\b")
PROCESS_FORMS: Final = ("pid: ", "pid=", "pid ", "PID ")  # what logs write before the id of a process


class Reason(StrEnum):
    """Why an event is not used as evidence."""

    CORRECTED = "it was corrected or harmless by its own words"
    RECOVERED = "it recovered before the failure"
    OTHER_NODE = "it is of a node that the job did not use"
    OTHER_DEVICE = "it is of a device that the job does not use"
    OTHER_PORT = "it is of another port than those by which the job failed"
    OTHER_PROCESS = "it is of a process of another job or of the node itself"
    SURVIVED = "the job made progress afterwards"
    LATER = "it came after the failure"
    LONG_BEFORE = "it came long before the failure"
    NOT_SHOWN = "the log shows a failure that it does not explain"
    NO_TRACE = "nothing in the log or from the scheduler fits it"


class Support(StrEnum):
    """What supports an event that is used."""

    LOG = "the log shows what such an event causes"
    SCHEDULER = "the scheduler confirms it"
    TIME = "the processes of the job waited or lost each other from then on"
    SLOWER = "the steps of the job took longer from then on"
    SECOND_SOURCE = "a second source reports it"
    ALONE = "the log shows no other beginning"


class MatchedEvent:
    """A node event with the catalogue entries that match it.

    Not a data class: hundreds are made for a case, and a constructor of its own is compiled.

    Attributes:
        index: its place among the events of the case.
        text: its text.
        node: its node, None if unknown.
        source: who reports it, None if unknown.
        time: seconds into the year by the clock of the log, None if unknown.
        entries: ids of the catalogue entries that match it.
        causes: causes of the platform's sides for which these entries speak.
    """

    __slots__ = ("causes", "entries", "index", "node", "source", "text", "time")

    def __init__(
        self,
        index: int,
        text: str,
        node: str | None,
        source: str | None,
        time: float | None,
        entries: tuple[str, ...],
        causes: frozenset[str] = frozenset(),
    ) -> None:
        self.causes = causes
        self.index = index
        self.text = text
        self.node = node
        self.source = source
        self.time = time
        self.entries = entries


@dataclass(frozen=True, slots=True)
class JobEvidence:
    """What log and scheduler show of the job.

    Attributes:
        nodes: short names of its nodes.
        nodes_as_written: the same names in the letters of the scheduler, where these are capitals.
        job_id: its id, None if unknown.
        status: how it ended.
        own_entries: by line on which its processes report a failure of their own, the ids of its catalogue entries.
        own_causes: the causes for which these entries speak, however little.
        other_entries: ids of the entries on its other lines of failure, as lost peers, and of the scheduler's message.
        started: when it started, in seconds into the year; None if unknown. So the further times.
        last_progress: when about its last progress was; a few lines of progress may follow.
        latest_progress: finds when its very last line of progress was, None if unknown.
        failed: when its first line of failure was.
        ended: when it ended.
        stalled: since when its processes waited for one another, by the time-outs that they report.
        slowed: finds since when its steps took several times as long as before, None if they did not.
        slowed_between: finds between which times its steps became slower in a log that shows only a few of them, each
            None where it is not known; None if they did not.
        slow_nodes: finds the node of the rank that its logs name as the slowest again and again.
        late_nodes: finds the node whose ranks still worked while those of the others waited for them until a limit.
        mentions: whether a name is in its logs, as a whole word.
        job_names: finds the names that its logs call jobs.
        job_numbers: finds the numbers of a batch system by which its logs call jobs.
        of_batch_system: whether a batch system, whose jobs have numbers, may have started it.
        owners: its user, in lower case, as far as known.
        several: whether it had several processes.
        ports: names of the network ports that its logs say it uses.
        gpus: indexes of the GPUs that its logs say it uses.
        failed_nodes: short names of the nodes whose processes report a failure of their own, empty where unknown.
        failure_text: finds the lines of the failure and those that follow them.
        ends_in_words: whether one of its logs ends in words that no entry knows, which must be what it failed of.
        has_more_nodes: whether it has more GPUs than the nodes that are known, so that it ran on others as well.
        names_paths: whether its lines of failure name the file or directory that they are about.
        nodes_with_logs: short names of the nodes whose logs are known.
        pod_nodes: finds the short names of the nodes that ran pods of the job, by events of these pods there.
        pods_that_began: finds the pods of which an event says that one of their containers started.
        names_processes: whether its logs may name processes by their ids; few do.
        worked_before: whether a run of the same job is known that succeeded.
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
    nodes_as_written: frozenset[str] = frozenset()
    several: bool = True
    latest_progress: Callable[[], float | None] = lambda: None
    stalled: float | None = None
    slowed: Callable[[], float | None] = lambda: None
    slowed_between: Callable[[], tuple[float | None, float | None] | None] = lambda: None
    slow_nodes: Callable[[], frozenset[str]] = frozenset
    late_nodes: Callable[[], frozenset[str]] = frozenset
    job_names: Callable[[], frozenset[str]] = frozenset
    job_numbers: Callable[[], frozenset[str]] = frozenset
    of_batch_system: bool = True
    owners: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    gpus: frozenset[int] = frozenset()
    failed_nodes: frozenset[str] = frozenset()
    failure_text: Callable[[], str] = str
    ends_in_words: bool = False
    has_more_nodes: bool = False
    names_paths: bool = True
    nodes_with_logs: frozenset[str] = frozenset()
    pod_nodes: Callable[[], frozenset[str]] = frozenset
    pods_that_began: Callable[[], frozenset[str]] = frozenset
    names_processes: bool = True
    own_causes: frozenset[str] = frozenset()
    worked_before: bool = False

    def failure_names(self, names: frozenset[str]) -> bool:
        """Whether the lines of the failure name one of some things, none of which is a node of the job."""
        text = self.failure_text().lower()
        return any(is_whole_word_in(name, text) for name in names if short_name(name) not in self.nodes)

    def failed_on(self, node: str | None) -> bool:
        """Whether processes of a node report the failure, as far as it is known which do."""
        return node is None or not self.failed_nodes or short_name(node) in self.failed_nodes

    def failed_gpus(self) -> frozenset[int]:
        """Indexes of the GPUs that the lines of the failure name."""
        return frozenset(int(hit["index"]) for hit in _NAMED_GPU.finditer(self.failure_text()))

    def failed_ports(self) -> frozenset[str]:
        """Names of the InfiniBand devices that the lines of the failure name."""
        text = self.failure_text()
        if "mlx5_" not in text:
            return frozenset()
        return frozenset(name for hit in _NAMED_PORT.finditer(text) for name in hit.groups() if name is not None)

    def knows_process(self, pid: str) -> bool:
        """Whether the logs name a process by its id; few logs hold the number at all."""
        return self.mentions(pid) and any(self.mentions(form + pid) for form in PROCESS_FORMS)

    @property
    def is_numbered(self) -> bool:
        """Whether its id is a number, as batch systems give."""
        return (self.job_id or "")[:1].isdigit()

    @property
    def waits(self) -> bool:
        """Whether its processes report that another one is gone or late."""
        return not self.other_entries.isdisjoint(peer_lost())

    @property
    def waited_to_begin(self) -> bool:
        """Whether its processes report that not all of them came when they were to begin."""
        return not self.other_entries.isdisjoint(start_timeouts())

    @property
    def timed_out(self) -> bool:
        """Whether its processes report that they waited for another one until a limit."""
        return not self.other_entries.isdisjoint(wait_timeouts())

    @property
    def failed_or_ended(self) -> float | None:
        """When its first line of failure was, else when it ended."""
        return self.failed if self.failed is not None else self.ended


class Judgement:
    """Whether an event may have begun the failure. Not a data class, as `MatchedEvent`.

    Attributes:
        index: its place among the events of the case.
        reason: why it is not used; None if it is used.
        support: what supports it; None if it is not used.
        explains: the places of the later events that a change explains, since it names what they are about.
        leads: the places of other used events that it caused.
    """

    __slots__ = ("explains", "index", "leads", "reason", "support")

    def __init__(
        self,
        index: int,
        reason: Reason | None = None,
        support: Support | None = None,
        explains: tuple[int, ...] = (),
    ) -> None:
        self.index = index
        self.reason = reason
        self.support = support
        self.explains = explains
        self.leads: tuple[int, ...] = ()


class Fit(IntEnum):
    """How well log and scheduler fit an event, best last."""

    NONE = 0
    WAITS = 1  # the other processes lost one, or wait for it
    SCHEDULER = 2  # the job's status confirms it
    SLOWER = 3  # its steps took longer from then on
    LINE = 4  # a process reports what such an event causes


class Candidate:
    """An event while it is judged. Not a data class, as `MatchedEvent`.

    Attributes:
        event: the event.
        rules: what such an event does to a job; without one nothing is known of it.
        traits: what its rules say together.
        find_fit: finds how well log and scheduler fit it.
        reason: why it is not used, None if it is.
        credit: how well log and scheduler fit the later event that it explains, where that supports it.
    """

    __slots__ = ("_fit", "_objects", "credit", "event", "find_fit", "reason", "rules", "traits")

    def __init__(
        self, event: MatchedEvent, rules: tuple[EventRule, ...], find_fit: Callable[["Candidate"], Fit]
    ) -> None:
        self.event = event
        self.rules = rules
        self.find_fit = find_fit
        self.reason: Reason | None = None
        self.credit: Fit | None = None
        self.traits: EventTraits = traits_of(event.entries)
        self._fit: Fit | None = None  # until it is asked for first, as the objects
        self._objects: EventObjects | None = None

    @property
    def objects(self) -> EventObjects:
        """What its text names."""
        if self._objects is None:
            self._objects = read_objects(self.event.text)
        return self._objects

    @property
    def fit(self) -> Fit:
        """How well log and scheduler fit it; found when it is asked for first."""
        if self.credit is not None:
            return self.credit
        if self._fit is None:
            self._fit = self.find_fit(self)
        return self._fit

    @property
    def fits(self) -> bool:
        """Whether a line of the log is explained by the event."""
        return self.fit is Fit.LINE
