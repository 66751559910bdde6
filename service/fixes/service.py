"""The mitigation that fixed a failure, as a person reports it: one of the ten, which later advice counts."""

from classifiers import taxonomy
from service.db.session import Store, UnitOfWork
from service.errors import invalid
from service.recommend.ranking import codes

NOTHING = "none"  # removes an earlier report


def title(code: str) -> str:
    """The mitigation's title; empty for "none"."""
    return "" if code == NOTHING else taxonomy.load().mitigations[code].title


def check(code: str, field: str = "fixed_by") -> None:
    """Check that the code in a field is one of the ten, or "none".

    Raises:
        InvalidInput: names the field.
    """
    if code not in {*codes(), NOTHING}:
        raise invalid(field, "one of " + ", ".join((*codes(), NOTHING)), code)


def report(store: Store, failure_id: int, actor: str, code: str) -> None:
    """Store what fixed a failure, replacing an earlier report.

    Raises:
        NotFound: no such failure.
        InvalidInput: not one of the ten, or "none" to remove the report.
    """
    check(code)
    with store.unit_of_work() as work:
        work.failures.get(failure_id)
        report_within(work, failure_id, actor, code)


def report_within(work: UnitOfWork, failure_id: int, actor: str, code: str) -> None:
    """The same within a transaction, for an existing failure and a checked code."""
    before = work.applied_fixes.of(failure_id)
    work.applied_fixes.report(failure_id, None if code == NOTHING else code, actor)
    work.audit_log.append(
        actor,
        "failure.mended",
        f"failure/{failure_id}",
        before={} if before is None else {"fixed_by": before.code},
        after={"fixed_by": code},
    )
