"""Reported fixes of failures: one of the ten mitigations of Gao et al. each. Plain frozen dataclasses, no SQL."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ReportedFix:
    """One person's report of what fixed a failure. `code`: M1 to M10."""

    failure_id: int
    code: str
    at: datetime
    who: str


@dataclass(frozen=True, slots=True)
class NearestFix:
    """What fixed the nearest failure. `alike`: of the same fingerprint, otherwise only of the same cause."""

    by: ReportedFix
    cluster: str
    job_id: str
    alike: bool


@dataclass(frozen=True, slots=True)
class FixCount:
    """The number of failures of a cause on a cluster that one mitigation fixed."""

    cluster: str
    cause: str
    code: str
    many: int
