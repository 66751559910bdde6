"""The parts of an event that are stored, and those that the classifier reads: both without secrets."""

from typing import Any, TypeVar

from classifiers.redaction import has_secret, redact, redact_json
from service.contracts.event import JobCompletion, LogRef, NodeEventIn

# Free text from a job's owner or a scheduler, which may contain secrets.
FREE_TEXT = (
    *("name", "user", "team", "queue", "framework", "image", "command", "gpu_type"),
    *("scheduler", "reason", "message", "resubmit_of", "pod"),
)
_Part = TypeVar("_Part", LogRef, NodeEventIn)


def cleaned(event: JobCompletion) -> JobCompletion:
    """The event without secrets in its free text; log tails are redacted when logs are read.

    Returns the event itself if it contains no secrets, which is usual.
    """
    texts = [text for name in FREE_TEXT if isinstance(text := getattr(event, name), str)]
    texts += event.nodes
    for ref in event.logs:
        texts += (ref.node or "", ref.stream or "")
    for line in event.node_events:
        texts += (line.node or "", line.source or "", line.text)
    if not has_secret({"texts": texts, "labels": event.labels, "more": event.model_extra}):
        return event
    changes: dict[str, Any] = {
        name: redact(text) for name in FREE_TEXT if isinstance(text := getattr(event, name), str) and text
    }
    if event.labels:
        changes["labels"] = redact_json(event.labels)
    names = "\n".join(event.nodes)
    if redact(names) is not names:
        changes["nodes"] = tuple(redact(name) for name in event.nodes)
    if event.logs:
        changes["logs"] = tuple(_redacted(ref, "node", "stream") for ref in event.logs)
    if event.node_events:
        changes["node_events"] = tuple(_redacted(line, "node", "source", "text") for line in event.node_events)
    if event.model_extra:
        changes |= redact_json(event.model_extra)
    return event.model_copy(update=changes)


def _redacted(part: _Part, *names: str) -> _Part:
    """Returns the part itself if it contains no secrets."""
    changes = {
        name: clean
        for name in names
        if isinstance(text := getattr(part, name), str) and (clean := redact(text)) is not text
    }
    return part.model_copy(update=changes) if changes else part


def kept(event: JobCompletion) -> dict[str, Any]:
    """The event as it is stored for display: without tails (they are stored as logs), absent values and secrets."""
    out = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"logs": {"__all__": {"tail"}}})
    kept_fields = {name: value for name, value in out.items() if value or value not in ({}, [])}
    if has_secret(kept_fields):
        kept_fields = redact_json(kept_fields)
    return kept_fields


def storable(ref: LogRef) -> bool:
    """Whether a log's address may be stored for a later attempt: not if it contains a secret (a signed URL)."""
    return ref.uri is None or redact(ref.uri) == ref.uri
