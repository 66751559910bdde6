"""Files that a job does not find because its working directory could not be entered."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset

# Schedulers that go on elsewhere, and a shell's "cd" in a script that goes on after it failed.
_NOT_ENTERED: Final = re.compile(
    r"(?i)\b(?:couldn't|can't|cannot|could not|unable to) chdir\b[^\n/]{0,60}(?P<dir>/[^\s`'\":]{1,200})"
    r"|\bcd: (?P<cd>[^\s:]{1,200}): \w|error retrieving current directory"
)
_PARTS: Final = ("chdir", "cd: ", "current directory")
_NOT_THERE: Final = frozenset(
    {"python.file-not-found", "python.not-found-file", "python.cant-open-script", "wordings.not-there"}
)
_INTERPRETER: Final = "open file "
_ABSOLUTE: Final = re.compile(r"(?:^|[\s'\"`=(])(?P<path>/[\w.@%+=~-]{1,80}(?:/[\w.@%+=~-]{1,120}){0,12})")
_INSTEAD: Final = "/tmp"  # noqa: S108  # where a scheduler starts a job whose directory it cannot enter
_RANGE: Final = 500  # characters of a line that are read (judgement)


def withdraw_unentered(items: Sequence[EvidenceItem]) -> None:
    """Let files that are not there be a consequence where the working directory could not be entered before.

    Only files that are looked for in that directory: by a relative path, below it, or where the job was put instead.

    Args:
        items: all items; changed in place.
    """
    entered: dict[int, tuple[int, str]] = {}
    for item in items:
        if item.role != "initiating" or item.line_number is None or item.from_scheduler:
            continue
        found = _not_entered(item)
        if found is not None and item.offset < entered.get(item.stream, (item.offset + 1, ""))[0]:
            entered[item.stream] = item.offset, found
    if not entered:
        return
    for item in items:
        if item.role == "initiating" and item.stream in entered and any(hit.id in _NOT_THERE for hit in item.hits):
            offset, directory = entered[item.stream]
            if item.offset > offset and item.line_number is not None and _is_looked_for_there(item, directory):
                item.role, item.onset = "cascade", Onset.NEUTRAL


def _not_entered(item: EvidenceItem) -> str | None:
    """The directory that a line says could not be entered, "" if it does not name it; None for any other line."""
    if not any(part in item.message for part in _PARTS):
        return None
    found = _NOT_ENTERED.search(item.message, 0, _RANGE)
    return None if found is None else found["dir"] or found["cd"] or ""


def _is_looked_for_there(item: EvidenceItem, directory: str) -> bool:
    """Whether every path of a line is relative, below a directory, or where a job is put instead."""
    message = item.message[:_RANGE]
    at = message.find(_INTERPRETER)
    paths = [found["path"] for found in _ABSOLUTE.finditer(message, max(at, 0))]
    places = [f"{place}/" for place in (directory, _INSTEAD) if place]
    return all(any(f"{path}/".startswith(place) for place in places) for path in paths)
