"""Diagnosed failures: the current verdict's fields for lists, every version of the verdict, and the logs."""

from collections.abc import Mapping, Sequence
from typing import Any

from classifiers.case import LogStream
from service.store.records import FailureDetail, FailureFilter, FailureRow, FailureSort, NewFailure, Page, Source


class Failures:
    """The failures."""

    def add(self, failures: Sequence[NewFailure]) -> None:
        """Store failures whose outcome says `opens`, with verdict version 1, logs and event."""
        raise NotImplementedError

    def revise(
        self,
        failure_id: int,
        verdict: Mapping[str, Any],
        *,
        source: Source = "machine",
        attempt_id: int | None = None,
        streams: Sequence[LogStream] | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> int | None:
        """A new version of the verdict; the current one afterwards, except that a machine never overrules a person.

        With `attempt_id`, `streams` and `event` (where given) are kept as that attempt's logs.

        Returns:
            The new version's number, None where a person's verdict stands and `source` is "machine" (nothing but
            the logs is stored then).

        Raises:
            NotFound: no such failure.
        """
        raise NotImplementedError

    def attach(self, failure_id: int, attempt_id: int, streams: Sequence[LogStream], event: Mapping[str, Any]) -> None:
        """Keep an attempt's logs with a failure that another attempt opened, without a new verdict."""
        raise NotImplementedError

    def get(self, failure_id: int) -> FailureDetail:
        """All that is stored of one failure.

        Raises:
            NotFound: no such failure.
        """
        raise NotImplementedError

    def page(
        self,
        filters: FailureFilter | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        sort: FailureSort = "-ended_at",
    ) -> Page[FailureRow]:
        """One page of failures (`limit` 1–500).

        Raises:
            InvalidInput: a limit out of range, an unknown sort, a cursor that is not of this list and sort.
        """
        raise NotImplementedError
