"""The scope of a report: all jobs, or those of one cluster, of one team, or of a team on a cluster."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from service.db.session import ReadSession
from service.errors import FieldError, InvalidInput
from service.formatting import escape_invisible
from service.statistics.records import Scope
from service.times import rfc3339


def scope_of(cluster: str | None, team: str | None) -> Scope:
    """The scope of texts as they come from a form, a URL or a command; blank ones mean all."""
    return Scope((cluster or "").strip() or None, (team or "").strip() or None)


def values(scope: Scope) -> dict[str, str]:
    """The parts of a scope that are set, by the name of their parameter."""
    found = {"cluster": scope.cluster, "team": scope.team}
    return {name: value for name, value in found.items() if value is not None}


def words(scope: Scope) -> str:
    """The scope as text on one line, as in "cluster orion, team vision"; empty for all jobs."""
    return ", ".join(f"{name} {escape_invisible(' '.join(value.split()))}" for name, value in values(scope).items())


def link(page: str, scope: Scope, since: datetime, until: datetime, **filters: str) -> str:
    """The address of a page with what a figure of a report counts: its filters, scope and period."""
    times = {name: rfc3339(at) for name, at in (("since", since), ("until", until))}
    return f"{page}?{urlencode({**filters, **values(scope), **times})}"


def check(reading: ReadSession, scope: Scope, bounds: Sequence[datetime]) -> None:
    """Check that jobs of the cluster and of the team are known, so that a misspelt name gives no empty report.

    Args:
        reading: a snapshot of the database.
        scope: the scope.
        bounds: begin and end of the period in which jobs without a failure are searched.

    Raises:
        InvalidInput: no job of the cluster or team is known.
    """
    for name, value in values(scope).items():
        if not reading.weekly_counts.known(Scope(**{name: value}), bounds[0], bounds[-1]):
            expected = f"a {name} whose jobs ended here"
            raise InvalidInput(
                f"{name}: expected {expected}, not {value[:80]!r}", (FieldError(name, expected, value[:80]),)
            )
