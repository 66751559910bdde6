"""Reports of the platform in a log that are about another job."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from classifiers.extraction.envelopes.daemon_lines import is_of_daemon
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset

# The job that a line of a scheduler's controller is about.
_NAMED_JOB: Final = re.compile(r"\bJobId=(?P<id>\d{1,10})(?:_\d{1,7})?(?:\((?P<own>\d{1,10})\))?")
# What the job's own step and launcher call it.
_OWN_JOB: Final = re.compile(
    r"\*\*\* (?:JOB|STEP) (?P<a>\d{1,10})\b|\bStepId=(?P<b>\d{1,10})\b|\bSLURM_JOB_?ID[=:] ?(?P<c>\d{1,10})\b"
)
_MOST_MENTIONS: Final = 20  # mentions that are read (judgement)


def demote_other_jobs(items: Sequence[EvidenceItem], job_id: str | None, texts: Iterable[str]) -> None:
    """Withdraw what a controller reports of a job with another number.

    Args:
        items: all items; changed in place.
        job_id: the number of the job, None if unknown.
        texts: the logs, which may name it.
    """
    reports = [
        (item, found)
        for item in items
        if item.role == "initiating" and "JobId=" in item.text and is_of_daemon(item.text)
        for found in _NAMED_JOB.finditer(item.text)
    ]
    if not reports:  # most cases
        return
    own = {job_id} if job_id is not None and job_id.isdigit() else set()
    own |= {
        found["a"] or found["b"] or found["c"]
        for text in texts
        for found in islice(_OWN_JOB.finditer(text), _MOST_MENTIONS)
    }
    for report, found in reports:
        if own and own.isdisjoint({found["id"], found["own"]}):
            report.role, report.onset = "context", Onset.DEMOTED
