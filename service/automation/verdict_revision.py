"""A verdict was revised: what stood on it is withdrawn, or marked as done on a verdict that no longer stands."""

from collections.abc import Mapping
from typing import Any

from service.automation import notifications
from service.db.session import UnitOfWork
from service.requests.records import Request

_OPEN = frozenset({"held", "waiting", "leased"})


def revised(work: UnitOfWork, failure_id: int, wire: Mapping[str, Any]) -> list[Request]:
    """Withdraw what a revised verdict no longer supports; call it in the transaction that stores the revision.

    A request that still stands on the same side, cause and nodes goes on. One that waits or is held is withdrawn, a
    leased one too (its hook is answered 409), one that was done is marked. What a person asked for is left alone.

    Args:
        work: the open transaction.
        failure_id: whose verdict was revised.
        wire: the new verdict/1.

    Returns:
        The requests that were withdrawn or marked.
    """
    found = [
        one
        for one in work.requests.of_failures_for_update([failure_id])
        if one.origin == "policy" and not one.retracted and not stands(one, wire)
    ]
    why = f"the verdict was revised: {wire['side']}, {wire['cause']}" + (", undecided" if wire["abstained"] else "")
    waiting = [one.request_id for one in found if one.state in _OPEN or one.state == "shadow"]
    withdrawn = work.requests.end(
        waiting, "withdrawn", detail=why, retracted=True, only=("held", "waiting", "leased", "shadow")
    )
    told = [one for one in withdrawn if one.request_id in {was.request_id for was in found if was.state in _OPEN}]
    work.outbox.add(notifications.of_requests("resubmission.suppressed", told, why))
    acted = work.requests.retract([one.request_id for one in found if one.state in {"done", "unknown"}])
    return [*withdrawn, *acted]


def stands(request: Request, wire: Mapping[str, Any]) -> bool:
    """Whether a verdict still says what the request was made for. Pure."""
    action = wire.get("action")
    return (
        request.side == wire["side"]
        and request.cause == wire["cause"]
        and not wire["abstained"]
        and not wire.get("disputed", False)
        and (action is None or set(request.exclude_nodes) == set(action.get("exclude_nodes", ())))
    )
