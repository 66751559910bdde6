"""Messages about verdicts."""

from collections.abc import Mapping
from typing import Any

from service.deliveries.records import OutboxMessage


def of_verdict(kind: str, failure_id: int | None, wire: Mapping[str, Any]) -> OutboxMessage:
    """The message about a verdict: the verdict without its bulky parts, and the first line of evidence."""
    summary = {name: value for name, value in wire.items() if name not in {"evidence", "weighed", "missing", "reasons"}}
    first = next((line for line in wire["evidence"] if line["role"] == "initiating"), None)
    return OutboxMessage(
        kind,
        f"{wire['cluster']}/{wire['job_id']}",
        {"failure_id": failure_id, "headline": first["text"][:300] if first else None, "verdict": summary},
    )
