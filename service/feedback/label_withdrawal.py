"""Withdrawal of one person's labels: the labels no longer count, and the verdicts before them are current again."""

from dataclasses import dataclass
from datetime import datetime

from service.db.session import Store
from service.errors import NotFound


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The number of failures whose label was withdrawn, and of verdicts that returned to the machine's."""

    labels: int
    verdicts: int


def withdraw(store: Store, who: str, since: datetime, *, by: str) -> Withdrawn:
    """Withdraw a person's judgements since a time, one failure in a transaction. Other people's labels stay.

    Raises:
        Unavailable: the database does not answer; calling again withdraws the rest.
    """
    with store.reading() as reading:
        failure_ids = reading.feedback.judged_by(who, since)
    verdicts = 0
    for failure_id in failure_ids:
        with store.unit_of_work() as work:
            left = work.feedback.withdraw(failure_id, who, since, by)
            restored = False
            if left is None:
                try:
                    detail = work.failures.get(failure_id)
                except NotFound:
                    continue
                machine = next((one.body for one in detail.versions if one.source == "machine" and one.body), None)
                if detail.row.source == "person" and machine is not None:
                    restored = work.failures.revise(failure_id, machine, over_person=True) is not None
            work.audit_log.append(
                by, "label.withdrawn", f"failure/{failure_id}", before={"who": who}, after={"restored": restored}
            )
            verdicts += restored
    return Withdrawn(len(failure_ids), verdicts)
