"""Reports of the platform in a log that cannot be why the program ended.

They are about links and file systems where the error is in the code, much older than the error, or about another job.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Final

from classifiers import signatures
from classifiers.extraction.envelopes.daemon_lines import is_of_daemon
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.onset import Onset
from classifiers.extraction.stream_reader import StreamText
from classifiers.relevance.entry_groups import peer_lost, peer_silent, program_errors

_LINKS: Final = ("network.", "adapters.", "fabrics.")
_FILE_SYSTEMS: Final = "storage."
# Categories of errors in the code itself, of shapes and types, and of too little memory of a device: no file and no
# other process is involved.
_OF_CODE: Final = ("GC.", "DL.1", "DL.2", "DL.3")
_BACK: Final = re.compile(
    r"(?i)\bOK(?=\n|$)|\b(?:link|port|state|status|is|osd\d{1,6})[ :]{1,3}(?:definitely |is )?(?:up|active|online)\b"
    r"|\bconnection restored|\breconnected\b|\bback (?:online|up)\b|\brecovered\b|\bresponding again"
)
# What a report is about: an interface, a device, a server or a target of a file system.
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*\d[\w-]*|(?<=server )[\w.-]+")
_NOT_NAMES: Final = re.compile(r"(?i)rank\d|mlx\d_core|x\d+|e1000e?|v\d")
_RANGE: Final = 300  # characters of a line that are read, those of a recovery before its words (judgement)
_MOST_BACK: Final = 100  # lines that say that something is back (judgement)
# Judgement: what the kernel reports ends or stalls a process within minutes. A day is also more than clocks of
# different zones differ by.
_TOO_EARLY_S: Final = 86_400.0
# The job that a line of a scheduler's controller is about.
_NAMED_JOB: Final = re.compile(r"\bJobId=(?P<id>\d{1,10})(?:_\d{1,7})?(?:\((?P<own>\d{1,10})\))?")
# What the job's own step and launcher call it.
_OWN_JOB: Final = re.compile(
    r"\*\*\* (?:JOB|STEP) (?P<a>\d{1,10})\b|\bStepId=(?P<b>\d{1,10})\b|\bSLURM_JOB_?ID[=:] ?(?P<c>\d{1,10})\b"
)
_MOST_MENTIONS: Final = 20  # mentions that are read (judgement)


def demote_unrelated(items: Sequence[EvidenceItem], streams: Sequence[StreamText]) -> None:
    """Withdraw reports on links and file systems that do not explain the error of the program that follows them.

    A name, a key or a type that is wrong in the code is wrong whatever the network does. A file that is not there, or
    data of another form, may have been lost, but not with a server or a link that is back before.

    Args:
        items: all items; changed in place.
        streams: the texts.
    """
    reports = [item for item in items if item.role == "initiating" and _is_report(item)]
    if not reports:  # most cases
        return
    errors = [item for item in items if is_error_of_program(item)]
    for report in reports:
        later = [item for item in errors if item.stream == report.stream and item.offset > report.offset]
        if not later or _is_felt(report, later[0], items):
            continue
        end = max(item.start_offset for item in later)
        if any(_is_of_code(item) for item in later) or _is_back(report, streams[report.stream].text, end):
            report.role, report.onset = "context", Onset.DEMOTED


def demote_earlier_reports(items: Sequence[EvidenceItem]) -> None:
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
            report.role, report.onset = "context", Onset.DEMOTED


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


def is_error_of_program(item: EvidenceItem) -> bool:
    """Whether a line names an exception that only the program can cause."""
    if item.role != "initiating" or item.line_number is None or item.from_scheduler or item.survived:
        return False
    return item.exception is not None and any(hit.id in program_errors() for hit in item.hits)


def _is_of_code(item: EvidenceItem) -> bool:
    return any(hit.id in _entries_of_code() for hit in item.hits)


@cache
def _entries_of_code() -> frozenset[str]:
    """Ids of the entries that are about errors in the code itself, whatever else the case shows."""
    entries = signatures.packaged().by_id
    return frozenset(
        name
        for name in program_errors()
        if entries[name].categories and all(code.startswith(_OF_CODE) for code in entries[name].categories)
    )


def _is_report(item: EvidenceItem) -> bool:
    """Whether a line only reports on a link or a file system: no exception, and no damage of a file system."""
    if item.line_number is None or item.from_scheduler or item.exception is not None:
        return False
    found = [hit for hit in item.hits if hit.role == "initiating" and not hit.id.startswith("events.")]
    return bool(found) and all(
        hit.id.startswith(_LINKS) or (hit.id.startswith(_FILE_SYSTEMS) and hit.strength != "decisive") for hit in found
    )


def _is_felt(report: EvidenceItem, error: EvidenceItem, items: Iterable[EvidenceItem]) -> bool:
    """Whether between a report and an error a process says that it waited for another one or lost it."""
    felt = peer_lost() | peer_silent()
    return any(
        item.stream == report.stream
        and report.offset < item.offset < error.start_offset
        and (item.role == "cascade" or any(hit.id in felt for hit in item.hits))
        for item in items
    )


def _is_back(report: EvidenceItem, text: str, end: int) -> bool:
    """Whether a line between a report and a place in the log says that what the report is about is back."""
    names = {name for name in _NAME.findall(report.message[:_RANGE]) if _NOT_NAMES.fullmatch(name) is None}
    if not names:
        return False
    begin = report.offset + len(report.text)
    for count, found in enumerate(_BACK.finditer(text, begin, end)):
        if count >= _MOST_BACK:
            break
        line = text[text.rfind("\n", begin, found.start()) + 1 : found.end()]
        if not names.isdisjoint(_NAME.findall(line[-_RANGE:])):
            return True
    return False
