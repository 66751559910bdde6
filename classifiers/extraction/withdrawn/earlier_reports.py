"""Reports of the kernel and of daemons that stand in a log although they are much older than the failure."""

from collections.abc import Sequence
from typing import Final

from classifiers.extraction.envelopes.daemon_lines import is_of_daemon
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.onset import Onset
from classifiers.extraction.withdrawn.unrelated_reports import is_error_of_program

# Judgement: what the kernel reports ends or stalls a process within minutes. A day is also more than clocks of
# different zones differ by.
_TOO_EARLY_S: Final = 86_400.0


def withdraw_earlier_reports(items: Sequence[EvidenceItem]) -> None:
    """Withdraw reports from more than a day before an error that only the program can cause.

    The kernel keeps its messages since the machine was started, and who prints them prints the old ones too.

    Args:
        items: all items; changed in place.
    """
    beginnings = [item for item in items if item.role == "initiating" and item.line_number is not None]
    reports = [item for item in beginnings if is_of_daemon(item.text)]
    if not reports:  # most cases
        return
    ends = [time for item in items if is_error_of_program(item) and (time := time_of(item.text)) is not None]
    if not ends:
        return
    for report in reports:
        time = time_of(report.text)
        if time is not None and time + _TOO_EARLY_S < max(ends):
            report.role, report.onset = "context", Onset.WITHDRAWN
