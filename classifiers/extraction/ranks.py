"""Ranks that a line reports as missing, and ranks of lines and exits that name none.

A rank is missing that did not arrive, did not answer or died elsewhere. Sources: `monitored_barrier`, c10d's store,
Horovod's stall check, JAX and TensorFlow coordination. Where a line names no rank: exits by local rank, likely writers,
the rank of a single log.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.process_exits import ProcessExit, parse_ranks
from classifiers.node_names import short_name
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.event_rules import Object, traits_of
from classifiers.relevance.own_nodes import MOST_GPUS
from classifiers.relevance.words_in_text import is_whole_word_in, is_word_in

_FEW_STREAMS: Final = 2  # one log of all ranks, and its launcher's
_OF_NODES: Final[frozenset[Object]] = frozenset({"gpu", "process", "port", "disk", "node"})

_MISSING: Final = (
    re.compile(r"(?i)\bstraggl\w*\W{1,3}(?:is )?rank (?P<ranks>\d+)|\bslow(?:est)? rank\W{1,3}(?P<slow>\d+)"),
    re.compile(
        r"(?i)ranks? (?P<ranks>[\d, ]+) "
        r"(?:failed to pass monitored|did not (?:join|reach|call)|never (?:joined|arrived))"
    ),
    re.compile(r"(?i)(?:missing|absent|waiting (?:on|for)|stalled) ranks?[^\w\n]{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)(?:missing|absent) (?:workers?|tasks?)\W{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)\[(?P<ranks>\d+(?:[, ]+\d+)*)\] (?:did not|have not|has not) (?:join|respon)"),
    re.compile(r"wait timeout after \d+ms, keys: /default_pg/\S{0,80}?/(?P<ranks>\d{1,6})(?:\s|$)"),
    re.compile(r"while rank (?P<ranks>\d+) has inconsistent"),
    re.compile(r"(?i)\bTask (?P<ranks>\d+) heartbeat timeout"),
)  # fmt: skip
# One of these is part of every match in an ASCII line. Beyond ASCII, letters of other alphabets may match where case
# is ignored.
_MISSING_PARTS: Final = (
    "rank", "missing worker", "missing task", "absent worker", "absent task", " not join", " not respon",
    "/default_pg/", "heartbeat timeout",
)  # fmt: skip
_TASK: Final = re.compile(r"/job:(?:jax_worker|worker|ps|chief)/replica:\d+/task:(?P<rank>\d{1,6})(?!\d)")
_STALLED: Final = re.compile(r"Missing ranks:\s{0,8}\n(?:[^\n]{0,80}?[>\]:\s])?(?P<rank>\d{1,6}): \[")
_LOST_WORDS: Final = (
    "remote target", "straggler", "set to error", "unhealthy", "heartbeat", "lost", "stopped", "disconnected",
    "preempted", "died", "unavailable",
)  # fmt: skip
# Characters that are searched (judgement: what a line and its notice need).
_LINE_RANGE: Final = 1_500
_STALLED_RANGE: Final = 400
_TASK_RANGE: Final = 300
_MOST_TASKS: Final = 4


def find_missing_ranks(line: str, following: str = "") -> list[int]:
    """The ranks that a line reports as missing.

    Args:
        line: the line.
        following: the text after it, for notices of several lines.
    """
    low = line.lower()
    if not line.isascii() or contains_any(low, _MISSING_PARTS):
        for pattern in _MISSING:
            hit = pattern.search(line, 0, _LINE_RANGE)
            if hit is not None:
                return parse_ranks(hit["ranks"] or hit["slow"])
    stalled = _STALLED.search(f"{line}\n{following[:_STALLED_RANGE]}") if "Missing ranks" in line else None
    if stalled is not None:
        return [int(stalled["rank"])]
    if contains_any(low, _LOST_WORDS):
        tasks = _TASK.finditer(f"{line}\n{following[:_TASK_RANGE]}")
        return [int(task["rank"]) for task in tasks][:_MOST_TASKS]
    return []


def demote_stream_rank(
    raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit], texts: Sequence[str]
) -> None:
    """Make the rank of the only log a likely rank, where several processes may have written to that log.

    Args:
        raw: the case.
        items: its evidence items; changed in place.
        exits: the process exits that launchers report.
        texts: the texts of the streams, in order.
    """
    full = [index for index, _ in enumerate(raw.streams) if texts[index].strip()]
    if len(full) != 1 or raw.streams[full[0]].rank is None:
        return
    rank = raw.streams[full[0]].rank
    others = any(
        process_exit.rank not in {None, rank} or process_exit.local_rank not in {None, rank} for process_exit in exits
    )
    others = others or any(item.rank not in {None, rank} for item in items)
    if not others and (raw.job.gpus or 1) <= 1:
        return
    for item in items:
        if item.stream == full[0] and item.rank_from_stream:
            item.likely_rank = item.rank
            item.rank = None


def infer_likely_ranks(items: Iterable[EvidenceItem], attributions: Sequence[LineAttribution | None]) -> None:
    """Set the likely rank of initiating lines that do not name their rank; `attributions` by stream."""
    for item in items:
        attribution = attributions[item.stream] if item.stream < len(attributions) else None
        if attribution is None or item.role != "initiating" or item.rank is not None or item.line_number is None:
            continue
        rank = attribution.rank_near(item.start_offset)
        item.likely_rank = rank if rank is not None else item.likely_rank


def exited_ranks(exits: Iterable[ProcessExit]) -> tuple[int, ...]:
    """The ranks, else local ranks, of exits."""
    ranks = (process_exit.rank if process_exit.rank is not None else process_exit.local_rank for process_exit in exits)
    return tuple(rank for rank in ranks if rank is not None)


def resolve_local_ranks(exits: Iterable[ProcessExit], attribution: LineAttribution) -> list[ProcessExit]:
    """The exits, with the rank of a local rank where the log connects the two."""
    out = list(exits)
    if all(one.rank is not None or one.local_rank is None for one in out):
        return out
    ranks = attribution.ranks_by_local_rank()
    return [
        replace(one, rank=ranks[one.local_rank])
        if one.rank is None and one.local_rank is not None and one.local_rank in ranks
        else one
        for one in out
    ]


def expected_ranks(raw: RawCase, attributions: Sequence[LineAttribution], reporting: set[int]) -> set[int]:
    """The ranks that take part, as far as logs, streams and the job tell."""
    expected = {rank for attribution in attributions for rank in attribution.known_ranks}
    expected |= {stream.rank for stream in raw.streams if stream.rank is not None and len(raw.streams) > 1}
    world = raw.job.gpus or 0
    if world > len(reporting) and len(expected) <= world:
        expected |= set(range(world))
    elif sum(bool(stream.text) for stream in raw.streams) <= _FEW_STREAMS:
        expected |= set(range(max(reporting) + 1))
    return expected


def ranks_seen(raw: RawCase, items: Sequence[EvidenceItem]) -> int:
    """How many different ranks have a stream or a line."""
    streams = {stream.rank for stream in raw.streams if stream.rank is not None}
    return len(streams | {item.rank for item in items if item.rank is not None})


def ranks_on_node(
    raw: RawCase, items: Sequence[EvidenceItem], node: str | None, exits: Iterable[ProcessExit] = ()
) -> set[int]:
    """The ranks that ran on a node, as far as streams, lines and the reports of the agents of nodes tell."""
    if node is None:
        return set()
    name = short_name(node)
    sources = _places(raw, items, exits)
    return {rank for rank, where in sources if rank is not None and where and short_name(where) == name}


def nodes_of_rank(
    raw: RawCase, items: Sequence[EvidenceItem], rank: int | None, exits: Iterable[ProcessExit] = ()
) -> set[str]:
    """The short names of the nodes where a rank ran: of its own streams, else as lines and agents report it."""
    if rank is None:
        return set()
    own = {short_name(stream.node) for stream in raw.streams if stream.rank == rank and stream.node}
    return own or {short_name(where) for number, where in _places(raw, items, exits) if number == rank and where}


def _places(
    raw: RawCase, items: Sequence[EvidenceItem], exits: Iterable[ProcessExit]
) -> list[tuple[int | None, str | None]]:
    """Ranks with their nodes."""
    sources: list[tuple[int | None, str | None]] = [(stream.rank, stream.node) for stream in raw.streams]
    sources += [(item.rank, item.node) for item in items]
    # A launcher of all ranks may number the processes that it started, of which each may have started several ranks.
    of_agents = (
        process_exit
        for process_exit in exits
        if (process_exit.reported_first or process_exit.is_violent) and not process_exit.sees_all_ranks
    )
    sources += [(process_exit.rank, process_exit.node) for process_exit in of_agents]
    return sources


def ranks_of_event(raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit] = ()) -> set[int]:
    """The ranks on the node of the node event that began the failure; none without such an event."""
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or first.line_number is not None or first.from_scheduler or first.derived:
        return set()
    objects = traits_of(tuple([hit.id for hit in first.hits])).objects
    if objects.isdisjoint(_OF_NODES) and not ("filesystem" in objects and _is_of_one_client(raw, items, first)):
        return set()
    ranks = (ranks_on_node(raw, items, node, exits) for node in nodes_of_event(raw, first))
    return next((there for there in ranks if there), set())


def _is_of_one_client(raw: RawCase, items: Sequence[EvidenceItem], first: EvidenceItem) -> bool:
    """Whether the event of a file server was reported by one node of the job and by no other."""
    nodes = set(map(short_name, raw.job.nodes))
    entries = {hit.id for hit in first.hits}
    reports = (item for item in items if item.line_number is None and item.node and not item.from_scheduler)
    reporters = {
        short_name(report.node) for report in reports if report.node and any(hit.id in entries for hit in report.hits)
    }
    return first.node is not None and reporters & nodes == {short_name(first.node)}


def nodes_of_event(raw: RawCase, event: EvidenceItem) -> list[str]:
    """The nodes of the job that a node event is about, the likeliest first; none of the job's: where it was reported.

    A switch or a controller is no node of the job, and names one, or a pod whose log is of one.
    """
    short = {short_name(node): node for node in raw.job.nodes}
    own = short.get(short_name(event.node or ""))
    if own is not None:
        return [own]
    text = event.text.lower()
    named = [node for name, node in short.items() if is_word_in(name, text)]
    pods = [pod.rsplit("/", 1)[-1] for pod in read_objects(event.text).pods]
    logs = [stream for stream in raw.streams if stream.node and any(is_whole_word_in(pod, stream.text) for pod in pods)]
    of_pods = {log.node for log in logs if log.node}
    found = named + (sorted(of_pods) if len(of_pods) == 1 else [])
    return found or ([event.node] if event.node else [])


def rank_of_device(raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit] = ()) -> int | None:
    """The rank that uses the device that the event names with which the failure began; None if it is not known.

    Jobs start a process for each device of a node, in the order of the devices.
    """
    there = ranks_of_event(raw, items, exits)
    first = next((item for item in items if item.role == "initiating"), None)
    gpus = raw.job.gpus or 0
    if not there or first is None or "gpu" not in traits_of(tuple([hit.id for hit in first.hits])).objects:
        return None
    named = read_objects(first.text).gpus
    nodes = len(raw.job.nodes)
    ranks = [stream.rank for stream in raw.streams] + [one.rank for one in items]
    if max((rank for rank in ranks if rank is not None), default=0) < nodes:
        return None  # there may be one process on each node
    size = gpus // nodes if nodes and gpus % nodes == 0 and gpus <= MOST_GPUS * nodes else MOST_GPUS
    if len(named) != 1 or max(there) >= gpus or min(there) // size != max(there) // size:
        return None
    (device,) = named
    return min(there) // size * size + device if device < size else None
