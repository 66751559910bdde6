"""Withdraws or marks the requests of a verdict that was revised."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from service.automation import notifications
from service.db.session import UnitOfWork
from service.resubmissions.records import OPEN_STATES, Request


def withdraw_unsupported(work: UnitOfWork, wires: Mapping[int, Mapping[str, Any]]) -> list[Request]:
    """Withdraw the requests that revised verdicts no longer support, in the transaction that stores the revisions.

    Requests with the same side, cause and nodes remain. Waiting, held and leased requests are withdrawn (the hook of a
    leased one gets status 409), completed ones are marked as retracted. Requests of people are not changed.

    Args:
        work: the open transaction.
        wires: the new verdict/1 of each failure, by the failure's id.

    Returns:
        The requests that were withdrawn or marked.
    """
    unsupported: defaultdict[int, list[Request]] = defaultdict(list)
    for one in work.requests.of_failures_for_update(list(wires)):
        if one.origin == "policy" and not one.retracted and not supports(wires[one.failure_id], one):
            unsupported[one.failure_id].append(one)
    return [one for failure_id, found in unsupported.items() for one in _withdraw(work, wires[failure_id], found)]


def _withdraw(work: UnitOfWork, wire: Mapping[str, Any], found: Sequence[Request]) -> list[Request]:
    """Withdraw or mark the requests of one failure."""
    why = f"the verdict was revised: {wire['side']}, {wire['cause']}" + (", undecided" if wire["abstained"] else "")
    pending = [one.request_id for one in found if one.state in OPEN_STATES or one.state == "shadow"]
    withdrawn = work.requests.end(pending, "withdrawn", detail=why, retracted=True, only=(*OPEN_STATES, "shadow"))
    were_open = {one.request_id for one in found if one.state in OPEN_STATES}
    announced = [one for one in withdrawn if one.request_id in were_open]
    work.outbox.add(notifications.of_requests("resubmission.suppressed", announced, why))
    completed = work.requests.retract([one.request_id for one in found if one.state in {"done", "unknown"}])
    return [*withdrawn, *completed]


def supports(wire: Mapping[str, Any], request: Request) -> bool:
    """Whether a verdict still supports a request. Pure."""
    action = wire.get("action")
    return (
        request.side == wire["side"]
        and request.cause == wire["cause"]
        and not wire["abstained"]
        and not wire.get("disputed", False)
        and (action is None or set(request.exclude_nodes) == set(action.get("exclude_nodes", ())))
    )
