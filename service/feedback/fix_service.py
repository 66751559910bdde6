"""What mended a failure, as a person says: one of the ten mitigations, which later advice counts."""

from classifiers import taxonomy
from service.db.session import Store, UnitOfWork
from service.errors import invalid
from service.recommend.ranking import codes

NOTHING = "none"  # takes back what was said


def title(code: str) -> str:
    """Its name for people; empty for "none"."""
    return "" if code == NOTHING else taxonomy.load().mitigations[code].title


def check(code: str) -> None:
    """Return where it is one of the ten, or "none".

    Raises:
        InvalidInput: names the field.
    """
    if code not in {*codes(), NOTHING}:
        raise invalid("fixed_by", "one of " + ", ".join((*codes(), NOTHING)), code)


def say(store: Store, failure_id: int, who: str, code: str) -> None:
    """Keep what mended a failure, in place of what was said before.

    Raises:
        NotFound: no such failure.
        InvalidInput: not one of the ten, or "none" to take it back.
    """
    check(code)
    with store.unit_of_work() as work:
        work.failures.get(failure_id)
        noted(work, failure_id, who, code)


def noted(work: UnitOfWork, failure_id: int, who: str, code: str) -> None:
    """The same within a transaction, of a failure that is there and a code that was checked."""
    before = work.applied_fixes.of(failure_id)
    work.applied_fixes.say(failure_id, None if code == NOTHING else code, who)
    work.audit_log.append(
        who,
        "failure.mended",
        f"failure/{failure_id}",
        before={} if before is None else {"fixed_by": before.code},
        after={"fixed_by": code},
    )
