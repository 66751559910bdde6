"""Every finished attempt: one narrow row under its own key, stored exactly once."""

from collections.abc import Collection, Mapping, Sequence

from service.store.records import Attempt, JobOutcome, NewJob


class Jobs:
    """The attempts."""

    def known(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """The content digest of each of `keys` that is stored, or was before retention removed its row."""
        raise NotImplementedError

    def add(self, jobs: Sequence[NewJob]) -> list[JobOutcome]:
        """Store what is new; one outcome a job, in order. Repeats within `jobs` are duplicates or conflicts too."""
        raise NotImplementedError

    def attempts(self, cluster: str, job_id: str) -> tuple[Attempt, ...]:
        """Every stored attempt of a job, oldest first; empty if there is none."""
        raise NotImplementedError
