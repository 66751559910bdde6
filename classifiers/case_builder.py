"""Builds the classifier's input from a job-completion/1 event: the same function in training and in serving."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any

from classifiers.contracts import (
    DIAGNOSTIC_KINDS,
    FLIGHT_RECORDER,
    LOG_KINDS,
    GoodRun,
    JobFacts,
    LogStream,
    NodeEvent,
    RawCase,
)
from classifiers.diagnostic_files.streams import read_diagnostic_files
from classifiers.flight_recorder.streams import collective_evidence, inline_dump
from classifiers.node_names import short_name

NOT_INLINE = "the log was not given inline"
_KIND_CHARS = 60
# Judging an event takes time with the other events and the nodes of its job (measured: 8,000 events took 24 s).
NODE_EVENTS_MOST = 1_000
_EVENTS_TIMES_NODES = 10_000_000


def build_case(
    event: Any,
    streams: Sequence[LogStream] | None = None,
    good_run: GoodRun | None = None,
    changes: Sequence[NodeEvent] = (),
) -> RawCase:
    """Return the case of an event.

    Args:
        event: a decoded job-completion/1 object, or an object with its fields as attributes. A value of the wrong
            type counts as not known.
        streams: the logs as read; None: the inline tails of the event, where a log without one counts as missing.
            Flight Recorder dumps among them become the case's `collectives`, diagnostic files its `diagnostics`.
        good_run: the lines of the last run of the same job that succeeded.
        changes: changes of the platform that are known from elsewhere.
    """
    read = _inline_streams(event) if streams is None else streams
    files = read_diagnostic_files(read)
    logs = [log for log in read if log.stream != FLIGHT_RECORDER and log.stream not in DIAGNOSTIC_KINDS]
    job = job_facts(event)
    events = _without_repeats((*_node_events(event), *files.node_events, *changes), job.nodes)
    most = min(NODE_EVENTS_MOST, max(1, _EVENTS_TIMES_NODES // max(1, len(job.nodes))))
    return RawCase(
        job=job,
        streams=(*logs, *files.logs),
        collectives=collective_evidence(read),
        diagnostics=files.evidence,
        good_run=good_run,
        node_events=_nearest(events, job.ended_at, most),
        node_events_cut=max(0, len(events) - most),
    )


def _nearest(events: Sequence[NodeEvent], end: datetime | None, most: int) -> tuple[NodeEvent, ...]:
    """Of too many events those nearest to the end of the job, or to the latest event, in the order of the list.

    What ended a job is seldom far from its end, whereas a node that starts again writes thousands of lines after it.
    Of an event without a time nothing says that it is near: these are left out first.
    """
    if len(events) <= most:
        return tuple(events)
    times = [None if event.at is None else event.at.timestamp() for event in events]
    center = max((time for time in times if time is not None), default=0.0) if end is None else end.timestamp()
    far = [inf if time is None else abs(center - time) for time in times]
    order = sorted(range(len(events)), key=lambda place: (far[place], -place))
    return tuple(events[place] for place in sorted(order[:most]))


def _without_repeats(events: Sequence[NodeEvent], nodes: Sequence[str]) -> tuple[NodeEvent, ...]:
    """Each event once, with one name for each node: sources name it with and without its domain, or in capitals.

    Args:
        events: the events in order.
        nodes: the nodes of the job, whose names come first.
    """
    names = dict.fromkeys((*nodes, *(event.node for event in events if event.node is not None)))
    by_short: dict[str, str] = {}
    for name in names:
        by_short.setdefault(short_name(name), name)
    own = frozenset(nodes)
    known = {name: _known_name(name, by_short[short_name(name)]) for name in names if name not in own}
    return tuple(
        dict.fromkeys(
            event
            if event.node is None or known.get(event.node, event.node) == event.node
            else replace(event, node=known[event.node])
            for event in events
        )
    )


def _known_name(name: str, other: str) -> str:
    """Another name with the same short form, if both name the same node; two domains may have nodes of one name."""
    is_same = "." not in name or "." not in other or name.lower() == other.lower()
    return other if is_same else name


def _node_events(event: Any) -> Iterator[NodeEvent]:
    for entry in _list(_reader(event)("node_events")):
        field = _reader(entry)
        yield NodeEvent(
            text=str(field("text") or ""),
            at=_instant(field("at")),
            node=_text(field("node")),
            source=_text(field("source")),
        )


def job_facts(event: Any) -> JobFacts:
    """Return what the scheduler knows of the attempt; `event` as in `build_case`."""
    field = _reader(event)
    labels = field("labels")
    return JobFacts(
        status=str(field("status") or "failed"),
        job_id=_text(field("job_id")),
        exit_code=whole_number(field("exit_code")),
        signal=whole_number(field("signal")),
        scheduler=_text(field("scheduler")),
        reason=_text(field("reason")),
        message=_text(field("message")),
        framework=_text(field("framework")),
        command=_text(field("command")),
        image=_text(field("image")),
        name=_text(field("name")),
        user=_text(field("user")),
        gpus=whole_number(field("gpus")),
        gpu_type=_text(field("gpu_type")),
        nodes=tuple(str(node) for node in _list(field("nodes"))),
        time_limit_s=whole_number(field("time_limit_s")),
        started_at=_instant(field("started_at")),
        ended_at=_instant(field("ended_at")),
        restart_count=whole_number(field("restart_count")),
        labels={str(name): str(value) for name, value in labels.items()} if isinstance(labels, Mapping) else {},
    )


def unknown_kind(kind: str | None) -> str | None:
    """Return why a log of this kind is not read, None if it is."""
    if kind is None or kind in LOG_KINDS:
        return None
    return f"logs of kind {kind[:_KIND_CHARS]!r} are not read"


def stream_name(kind: str | None, stream: str | None) -> str:
    """Return the name of a log's stream: its kind if it is no plain log, else the name that is given."""
    return kind if kind in LOG_KINDS[1:] else stream or "stderr"


def _inline_streams(event: Any) -> list[LogStream]:
    streams = []
    for log in _list(_reader(event)("logs")):
        field = _reader(log)
        tail, kind = _text(field("tail")), _text(field("kind"))
        rank, node = whole_number(field("rank")), _text(field("node"))
        if kind == FLIGHT_RECORDER and tail is not None:
            streams.append(inline_dump(tail, rank, node))
            continue
        unknown = unknown_kind(kind)
        streams.append(
            LogStream(
                text=tail or "" if unknown is None else "",
                rank=rank,
                node=node,
                stream=stream_name(kind, _text(field("stream"))),
                missing=unknown or (None if tail is not None else NOT_INLINE),
            )
        )
    return streams


def _reader(source: Any) -> Callable[[str], Any]:
    """Reads the fields of a mapping or of an object by name; a missing one is None."""
    if isinstance(source, Mapping):
        return source.get
    # An event of the service holds all of its fields, and a job has 20: twice as fast as `getattr` for each.
    return vars(source).get if hasattr(source, "model_fields_set") else lambda name: getattr(source, name, None)


def _instant(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def whole_number(value: Any) -> int | None:
    """The value if it is a whole number, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def nests_deeper(value: Any, levels: int) -> bool:
    """Whether decoded JSON has lists and objects nested more than `levels` deep; Python's recursion ends near 1,000."""
    level = [value]
    for _ in range(levels + 1):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
