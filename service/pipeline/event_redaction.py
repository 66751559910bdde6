"""The parts of an event that are stored, and those that the classifier reads: both without secrets."""

from typing import Any

from pydantic import BaseModel

from classifiers.redaction import has_secret, redact, redact_json
from classifiers.secrets.finder import PLACEHOLDER, SearchBudget
from service.contracts.event import JobCompletion, LogRef

# The event's identity: it is part of keys, addresses and counts. All other texts are redacted, also those of fields
# that are added later.
IDENTITY = frozenset({"schema_", "event_id", "cluster", "job_id", "status"})
# Tails are redacted when logs are read; without its address, a log could not be read. `stored_fields` removes both.
_OF_LOGS = frozenset({"tail", "uri"})


def cleaned(event: JobCompletion) -> JobCompletion:
    """The event without secrets in its texts; log tails are redacted when logs are read.

    Returns the event itself if it contains no secrets, which is usual.
    """
    if not has_secret(_texts(event, IDENTITY)):
        return event
    changes = _changes(event, IDENTITY, SearchBudget())
    checkpoint = changes.get("checkpoint")
    if checkpoint is not None and PLACEHOLDER in (checkpoint.uri or ""):  # no address to resume from
        changes["checkpoint"] = checkpoint.model_copy(update={"uri": None})
    return event.model_copy(update=changes)


def _texts(model: BaseModel, left_out: frozenset[str]) -> dict[str, Any]:
    """All values of a model and of those in it, as JSON-like values."""
    found = {name: _plain(value) for name, value in model.__dict__.items() if value and name not in left_out}
    if model.__pydantic_extra__:
        found |= model.__pydantic_extra__
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _texts(value, _left_out_of(value))
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _changes(model: BaseModel, left_out: frozenset[str], budget: SearchBudget) -> dict[str, Any]:
    """The fields of a model that contain secrets, redacted."""
    changes = {}
    for name, value in model.__dict__.items():
        if value and name not in left_out:
            clean = _redacted(value, budget)
            if clean is not value:
                changes[name] = clean
    return changes | (redact_json(model.__pydantic_extra__, budget) if model.__pydantic_extra__ else {})


def _redacted(value: Any, budget: SearchBudget) -> Any:
    """Returns the value itself if it contains no secrets."""
    if isinstance(value, BaseModel):
        changes = _changes(value, _left_out_of(value), budget)
        return value.model_copy(update=changes) if changes else value
    if isinstance(value, tuple):
        parts = tuple(_redacted(one, budget) for one in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    return redact(value, budget) if type(value) is str else redact_json(value, budget)


def _left_out_of(value: BaseModel) -> frozenset[str]:
    return _OF_LOGS if isinstance(value, LogRef) else frozenset()


def stored_fields(event: JobCompletion) -> dict[str, Any]:
    """The event as it is stored for display: without tails (they are stored as logs), absent values and secrets."""
    out = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"logs": {"__all__": {"tail"}}})
    fields = {name: value for name, value in out.items() if value or value not in ({}, [])}
    if has_secret(fields):
        identity = {name: fields[name] for name in IDENTITY if name in fields}
        fields = redact_json(fields) | identity
    return fields


def storable(ref: LogRef) -> bool:
    """Whether a log's address may be stored for a later attempt: not if it contains a secret (a signed URL)."""
    return ref.uri is None or redact(ref.uri) == ref.uri
