"""Records of good runs."""

from dataclasses import dataclass
from datetime import datetime

from classifiers.contracts import GoodRun

JobName = tuple[str, str, str]
"""Cluster, user and name: jobs that agree in all three are runs of the same job."""


@dataclass(frozen=True, slots=True)
class StoredGoodRun:
    """The last successful run of a job, and when it ended (aware, in UTC)."""

    key: JobName
    run: GoodRun
    ended_at: datetime
