"""Intake of events by HTTP: request bodies become events and dead letters, handled like batches from Kafka."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import FieldError, NotFound, TooLarge, Unavailable, UnreadableRecord
from service.formats import recognise
from service.formats.field_reading import Skipped
from service.jobs.same_job import RESTARTED_WITHIN
from service.messaging import batching
from service.messaging.batch_result import BatchOutcome
from service.messaging.batching import BatchItem
from service.messaging.dead_letters import dead_letter
from service.messaging.retrying_handler import RetryingHandler
from service.people.api_tokens import Binding
from service.web import views
from service.web.services import Services

BATCH = 500  # events per transaction
# Each line is an event or a rejection with a dead letter; 16 MiB of empty objects would be millions.
MAX_LINES = 100_000
PLACE = "POST /api/v1/events"
NODE_PLACE = "POST /api/v1/node-events"
# It would change the places of nodes for all teams.
_NO_TOPOLOGY = "topology: dropped, expected none from a token of some teams, because nodes belong to all teams"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected line: the first invalid field, the expected value and the value found."""

    line: int
    field: str
    expected: str
    got: str | None = None


@dataclass(slots=True)
class Submitted:
    """Result of a request body. `ids`: the event id of each event, in order, duplicates included.

    `duplicates` counts events stored before; `conflicts` those among them with different content (the first one is
    kept). `skipped` counts records that are not the end of a job. `failures` are the ids of the failures that the
    events belong to, without those of conflicts.
    """

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    skipped: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)


def too_many_lines() -> TooLarge:
    """The error of a body with more than MAX_LINES lines."""
    expected = f"at most {MAX_LINES} lines"
    return TooLarge(f"the body: expected {expected}", (FieldError("(body)", expected),))


def lines_of(body: bytes) -> list[tuple[int, bytes]]:
    """The records of a body with their line numbers: one JSON object in any layout, or JSON lines.

    Raises:
        TooLarge: too many lines.
    """
    if body.count(b"\n") > MAX_LINES:
        if _is_object(body):
            return [(1, body)]
        raise too_many_lines()
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    if len(lines) <= 1:
        return lines or [(1, b"")]
    if _is_object(lines[0][1]):
        return lines
    if _is_object(body):
        return [(lines[0][0], body)]
    # A broken object in a layout of several lines is rejected as one; of JSON lines, each begins an object.
    are_records = all(line.lstrip().startswith(b"{") for _, line in lines) or any(_is_object(line) for _, line in lines)
    return lines if are_records else [(lines[0][0], body)]


def _is_object(text: bytes) -> bool:
    if not text.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends events: the caller's name, and the clusters and teams that it may send for."""

    name: str = "this machine"
    binding: Binding = field(default_factory=Binding)

    @property
    def source(self) -> str:
        """The `intake_source` of its events."""
        return f"api/{self.name}"


def submit(
    services: Services,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    cluster: str | None = None,
    sender: Sender | None = None,
) -> Submitted:
    """Store and diagnose the events of a body; returns after the commit. An invalid line rejects only itself.

    Args:
        services: the services of the application.
        body: one object or JSON lines, in any supported format.
        headers: headers of the request; used for CloudEvents in binary mode.
        cluster: the cluster of records that name none.
        sender: who sends the body.

    Raises:
        TooLarge: too many lines; nothing was stored.
        Unavailable: the database does not answer; the same body can be sent again.
    """
    done = Submitted()
    attributes = cloud_event_headers(headers or {})
    records = [(1, body)] if attributes else lines_of(body)
    for start in range(0, len(records), BATCH):
        _batch(services, records[start : start + BATCH], attributes, cluster, sender or Sender(), done)
    done.rejected.sort(key=lambda rejection: rejection.line)
    return done


def _batch(
    services: Services,
    records: Sequence[tuple[int, bytes]],
    attributes: Sequence[tuple[str, bytes]],
    cluster: str | None,
    sender: Sender,
    done: Submitted,
) -> None:
    events: list[tuple[int, bytes, JobCompletion]] = []
    dead: list[BatchItem] = []
    for number, raw in records:
        read = batching.read(recognise.parse, raw, attributes, cluster=cluster, source=sender.source)
        found = _permitted(read, sender)
        if isinstance(found, UnreadableRecord):
            dead.append(_rejected(services, number, raw, found, done))
        elif isinstance(found, Skipped):
            done.skipped += 1
            services.telemetry.events.labels("skipped").inc()
        else:
            events.append((number, raw, found))
    if sender.binding.teams:
        for position in reversed(_of_other_teams(services, [event for _, _, event in events], sender.binding.teams)):
            number, raw, event = events.pop(position)
            problem = FieldError("job_id", "a job of which no other team sent an end", event.job_id[:80])
            refused = UnreadableRecord(f"the token {sender.name} may not send this: job_id", (problem,))
            dead.append(_rejected(services, number, raw, refused, done))
    if events or dead:
        _store(services, events, dead, done)


def _rejected(services: Services, number: int, raw: bytes, error: UnreadableRecord, done: Submitted) -> BatchItem:
    """Note that a line was rejected; returns its dead letter."""
    first = error.errors[0] if error.errors else FieldError("(whole record)", error.reason)
    done.rejected.append(Rejection(number, first.field, first.expected, first.got))
    place = f"{PLACE} line {number}"
    return BatchItem(dead_letter(raw, place, error, services.clock.now()), raw, place)


def _of_other_teams(services: Services, events: Sequence[JobCompletion], teams: Sequence[str]) -> list[int]:
    """The positions of events of jobs that ran for another team shortly before or after; ids are used again later."""
    with services.reading() as reading:
        stored = reading.jobs.attempts_of_jobs({(event.cluster, event.job_id) for event in events})
    return [
        position
        for position, event in enumerate(events)
        if any(
            one.team is not None and one.team not in teams and abs(one.ended_at - event.ended_at) <= RESTARTED_WITHIN
            for one in stored.get((event.cluster, event.job_id), ())
        )
    ]


def _permitted(
    found: JobCompletion | Skipped | UnreadableRecord, sender: Sender
) -> JobCompletion | Skipped | UnreadableRecord:
    """What was read; an error if the sender's token is not for its cluster or team: an operator may resend it."""
    problem = sender.binding.problem(found) if isinstance(found, JobCompletion) else None
    if problem is None:
        if isinstance(found, JobCompletion) and found.topology and sender.binding.teams:
            found = found.model_copy(update={"topology": {}}).with_problems([_NO_TOPOLOGY])
        return found
    return UnreadableRecord(f"the token {sender.name} may not send this: {problem.field}", (problem,))


def _store(
    services: Services, events: Sequence[tuple[int, bytes, JobCompletion]], dead: Sequence[BatchItem], done: Submitted
) -> None:
    """Store events and dead letters. An event that cannot be handled is a dead letter."""

    def store(events: Sequence[JobCompletion], dead: Sequence[DeadLetter]) -> None:
        _count(services.ingest(events, dead), done)

    items = {number: BatchItem(event, raw, f"{PLACE} line {number}") for number, raw, event in events}
    became = RetryingHandler(store, _give_up).store_items([*items.values(), *dead])
    places = {item.place for item in became}
    done.rejected += [
        Rejection(number, "(whole record)", "a record that this version can handle")
        for number, item in items.items()
        if item.place in places
    ]


def _give_up(error: Unavailable, _times: int) -> None:
    raise error


def _count(outcome: BatchOutcome, done: Submitted) -> None:
    for event in outcome.events:
        done.ids.append(event.event_id)
        if event.kind == "accepted":
            done.accepted += 1
        else:
            done.duplicates += 1
            done.conflicts += event.kind == "conflict"
        # Who sends another content under a known id has not shown to know the stored event.
        if event.kind == "conflict" or event.failure_id is None or event.failure_id in done.failures:
            continue
        done.failures.append(event.failure_id)


def cloud_event_headers(headers: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """The headers of a CloudEvent in binary mode (HTTP protocol binding 1.0); empty for other requests."""
    if "ce-specversion" not in headers:
        return []
    return [
        (name, value.encode("latin-1", "replace"))
        for name, value in headers.items()
        if name.startswith("ce-") or name == "content-type"
    ]


def verdicts(services: Services, failures: Sequence[int]) -> list[dict[str, Any]]:
    """The current verdict/1 of each failure with its `failure_id`.

    Omitted are failures that the caller may not see, and those whose verdict retention removed.
    """
    found = []
    for failure_id in failures:
        with suppress(NotFound):
            verdict = views.failure(services, failure_id).verdict
            if verdict is not None:
                found.append({**verdict, "failure_id": failure_id})
    return found
