"""Reads a record whose optional fields may be wrong: these are left out, and the event lists them as problems.

Fields that identify the job or tell how and when it ended are never left out: a record in which one of them is wrong is
refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from service.contracts.event import PROBLEMS_MOST, JobCompletion, described
from service.contracts.field_removal import without
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped

Read = Callable[[Mapping[str, Any], str | None], JobCompletion | Skipped]


def tolerant(read: Read, optional: frozenset[str]) -> Read:
    """A reader that leaves out wrong fields of `optional` and what is below them.

    Args:
        read: raises UnreadableRecord for a wrong field, with its place in the record.
        optional: fields that may be left out, with dots between levels.
    """

    def reading(record: Mapping[str, Any], cluster: str | None) -> JobCompletion | Skipped:
        try:
            return read(record, cluster)
        except UnreadableRecord as error:
            return _read_without(read, optional, record, cluster, error)

    return reading


def _read_without(
    read: Read, optional: frozenset[str], record: Mapping[str, Any], cluster: str | None, error: UnreadableRecord
) -> JobCompletion | Skipped:
    problems: list[str] = []
    rest = record
    while True:
        fields = [one.field for one in error.errors]
        if not fields or len(problems) > PROBLEMS_MOST or not all(_is_below(field, optional) for field in fields):
            raise error
        problems += [described(one) for one in error.errors]
        smaller = without(rest, [field.split(".") for field in fields])
        if smaller == rest:
            raise error
        rest = smaller
        try:
            found = read(rest, cluster)
        except UnreadableRecord as another:
            error = another
        else:
            return found if isinstance(found, Skipped) else found.with_problems(problems)


def _is_below(field: str, optional: frozenset[str]) -> bool:
    parts = field.split(".")
    return any(".".join(parts[: number + 1]) in optional for number in range(len(parts)))
