"""The steps between an event and its printed verdict that commands share."""

from collections.abc import Sequence
from typing import Any

from classifiers.case_builder import build_case, stream_name, unknown_kind
from classifiers.contracts import FLIGHT_RECORDER, GoodRun, LogStream, RawCase, Verdict
from classifiers.flight_recorder.streams import inline_dump
from classifiers.redaction import redact
from service.contracts.event import JobCompletion, LogRef
from service.contracts.verdict import VerdictBody
from service.logs.text_cleaning import decode
from service.pipeline.event_redaction import cleaned
from service.recommend import policy
from service.recommend.advise import advise_without_history

_NOT_FETCHED = "given by its address only, which this command does not read"


def case_of(
    event: JobCompletion, streams: Sequence[LogStream] | None = None, good_run: GoodRun | None = None
) -> RawCase:
    """Return the case of an event, cleaned and redacted as in the service.

    Args:
        event: the event.
        streams: its logs, clean and redacted; None: its inline tails.
        good_run: the lines of the last run of the same job that succeeded.
    """
    return build_case(cleaned(event), inline_streams(event) if streams is None else streams, good_run)


def inline_streams(event: JobCompletion) -> list[LogStream]:
    """Return the inline tails of an event, clean and redacted."""
    return [_inline_stream(log) for log in event.logs]


def _inline_stream(log: LogRef) -> LogStream:
    if log.kind == FLIGHT_RECORDER and log.tail is not None:
        return inline_dump(log.tail, log.rank, log.node)
    unknown = unknown_kind(log.kind)
    missing = None if log.tail is not None else redact(log.absence(_NOT_FETCHED))
    return LogStream(
        text=redact(decode(log.tail.encode("utf-8", "replace"))) if log.tail and unknown is None else "",
        rank=log.rank,
        node=log.node,
        stream=stream_name(log.kind, log.stream),
        missing=unknown or missing,
    )


def verdict_body(event: JobCompletion, verdict: Verdict, rules: policy.Policy) -> VerdictBody:
    """Return the verdict with the policy's advice for this one event, without history."""
    return VerdictBody.from_verdict(
        verdict,
        advise_without_history(verdict, event, rules, event.ended_at),
        event_id=event.key(),
        cluster=event.cluster,
        job_id=event.job_id,
        attempt=event.attempt,
    )


def wire(event: JobCompletion, verdict: Verdict, rules: policy.Policy) -> dict[str, Any]:
    """Return `verdict_body` as a verdict/1 object."""
    return verdict_body(event, verdict, rules).to_wire()
