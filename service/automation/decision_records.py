"""Reads stored decisions: to explain one, or to replay many."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from classifiers.contracts import Evidence, JobFacts, Progress, Suspect, Verdict
from service.contracts.event import JobCompletion
from service.contracts.verdict import stored_verdict
from service.db.session import ReadSession
from service.errors import NotFound, damage_translated
from service.recommend import facts_wire
from service.recommend.replay import PastDecision
from service.resubmissions.repository.decision_history import StoredDecision


def decision(reading: ReadSession, failure_id: int, version: int | None = None) -> PastDecision:
    """The decision on a failure: the newest one, or the one on a given version of its verdict.

    Raises:
        NotFound: no such failure, no advice on it, or its verdict was removed by retention.
    """
    detail = reading.failures.get(failure_id)
    bodies = {one.version: one.body for one in detail.versions}
    for advised, at, _, decided, mode, facts in reading.advice_history.of(failure_id):
        if version is not None and advised != version:
            continue
        body = bodies.get(advised)
        if body is None:
            continue
        event = _event(body, [one.event for one in detail.logs])
        return PastDecision(
            failure_id=failure_id,
            at=at,
            cluster=event.cluster,
            queue=event.queue,
            team=event.team,
            verdict=stored_verdict(body),
            job=event.facts(),
            facts=facts_wire.from_wire(facts),
            decision=decided,  # type: ignore[arg-type] # as stored
            mode=mode,  # type: ignore[arg-type] # as stored
        )
    raise NotFound(f"failure {failure_id}: no advice is stored" + (f" for version {version}" if version else ""))


def _event(body: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> JobCompletion:
    """The event of a verdict; the last event if none has its key."""
    read = [JobCompletion.model_validate(event) for event in events]
    if not read:
        raise NotFound("the event of the verdict is not stored any more")
    return next((event for event in read if event.key() == body["event_id"]), read[-1])


def past_decisions(rows: Iterable[StoredDecision]) -> Iterator[PastDecision]:
    """The decisions for a replay, with what the rules read of verdict and job; rows without body are skipped.

    Raises:
        DamagedData: a row has another form than those that are written.
    """
    for row in rows:
        if row.body is not None and row.facts is not None:
            with damage_translated():
                made = _past_decision(row, row.body, row.facts)
            yield made


def _past_decision(row: StoredDecision, body: Mapping[str, Any], facts: Mapping[str, Any]) -> PastDecision:
    event = row.event or {}
    return PastDecision(
        failure_id=row.failure_id,
        at=row.at,
        cluster=row.cluster,
        queue=row.queue,
        team=row.team,
        verdict=_verdict(body),
        job=JobFacts(
            status=row.status,
            gpus=row.gpus,
            nodes=row.nodes,
            started_at=row.started_at,
            ended_at=row.ended_at,
            scheduler=event.get("scheduler"),
            exit_code=event.get("exit_code"),
            signal=event.get("signal"),
            time_limit_s=event.get("time_limit_s"),
            user=event.get("user"),
        ),
        facts=facts_wire.from_wire(facts),
        decision=row.decision,  # type: ignore[arg-type] # as stored
        mode=row.mode,  # type: ignore[arg-type] # as stored
        made=row.made,
        outcome=row.outcome,  # type: ignore[arg-type] # as stored
        gpu_hours=row.gpu_hours,
        rescued=row.rescued,
    )


def _verdict(body: Mapping[str, Any]) -> Verdict:
    """The parts of a verdict that the rules read; the rest is left out, because a replay reads a million of them."""
    suspect, progress = body["suspect"], body["progress"]
    at = None if progress is None else progress["at"]
    return Verdict(
        side=body["side"],
        cause=body["cause"],
        cause_top=(),
        category=body["category"],
        symptom=body["symptom"],
        symptom_top=(),
        platform_symptom=body["platform_symptom"],
        confidence=body["confidence"],
        abstained=body["abstained"],
        retry_outlook=body["retry_outlook"],
        fingerprint=body["fingerprint"],
        explanation="",
        model="",
        rules="",
        evidence=tuple(
            Evidence(line["text"], line["role"], node=line["node"])
            for line in body["evidence"]
            if line["role"] == "initiating"
        ),
        suspect=None if suspect is None else Suspect(suspect["rank"], suspect["node"], suspect["gpu"]),
        progress=None
        if progress is None
        else Progress(progress["step"], progress["checkpoint"], None if at is None else datetime.fromisoformat(at)),
        disputed=bool(body.get("disputed")),
        uncorroborated=bool(body.get("uncorroborated")),
    )
