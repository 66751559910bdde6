"""Files, modules and commands that a job does not find whole because what should bring them failed.

Three earlier steps are known: the working directory could not be entered; a command that copies or mounts files failed;
an installation of packages or modules failed. Or a server sent a page about its own error instead of a file.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset

# What a server answers. The entries of refusals and missing pages are the user's side, as without markup.
_ANSWERS: Final = frozenset({"service.http-5xx", "service.http-404", "service.http-401-403", "service.http-429"})
_MARKUP: Final = re.compile(r"(?i)<(?:title|h1|html|!doctype html)\b")
# Entries of files that are damaged or no archive, and the same in other words: checksums, formats, signatures.
_DAMAGED: Final = frozenset({"python.pickle-load", "libraries.truncated", "shell.tar", "build.pip-hash"})
_UNREADABLE: Final = re.compile(
    r"(?i)checksums? [^\n]{0,40}\bnot match|checksum[^\n]{0,40}\b(?:failed|mismatch|wrong)|not in gzip format"
    r"|not (?:a|an) (?:valid )?(?:zip|gzip|tar|hdf5|parquet|image|archive|squashfs|npy)\b|cannot identify image"
    r"|JSONDecodeError|unexpected token '?<|invalid (?:header|magic|signature|file format)|bad magic number"
    r"|end-of-central-directory|does not look like a tar|tar: child returned"
    r"|unable to (?:open|read) file \(file signature"
)
_PAGE_RANGE: Final = 400  # characters of a line in which a page or such words are looked for (judgement)
_FILES: Final = frozenset(
    {
        "python.file-not-found",
        "python.not-found-file",
        "python.cant-open-script",
        "tensorflow.notfound-path",
        "wordings.not-there",
    }
)
# What a copy that broke off leaves behind.
_PARTS: Final = _DAMAGED - {"build.pip-hash"}
_PACKAGES: Final = frozenset({"python.module-not-found", "python.shared-object", "shell.command-not-found"})
_MISSING: Final = _FILES | _PARTS | _PACKAGES
# Schedulers that go on elsewhere, and a shell's "cd" in a script that goes on after it failed.
_NOT_ENTERED: Final = re.compile(
    r"(?i)\b(?:couldn't|can't|cannot|could not|unable to) chdir\b[^\n/]{0,60}(?P<dir>/[^\s`'\":]{1,200})"
    r"|\bcd: (?P<cd>[^\s:]{1,200}): \w|error retrieving current directory"
)
_DIRECTORY_PARTS: Final = ("chdir", "cd: ", "current directory")
_COPY: Final = re.compile(
    r"fatal: (?:unable to access|repository|could not read|the remote end)|(?i:could not resolve host: )"
    r"|(?:rsync|scp|sftp|tar|unzip|gzip|cp|wget|curl|aws|gsutil|azcopy|rclone|mc)(?: error)?: "
    r"|(?:fatal|download failed|copy failed): |(?:Service|Command)Exception: |curl: \(\d+\)|wget: unable"
    r"|mount(?:\.\w+)?: |mount error|(?i:failed to mount |could not mount )"
)
_INSTALLATION: Final = re.compile(
    r"ERROR: (?:Could not (?:install|find a version)|No matching distribution|Failed building)|Conda\w*Error|"
    r"ResolvePackageNotFound|Lmod has detected|ModuleCmd_Load|E: (?:Unable to (?:fetch|locate)|Failed to fetch)"
)
_INTERPRETER: Final = "open file "
_ABSOLUTE: Final = re.compile(r"(?:^|[\s'\"`=(])(?P<path>/[\w.@%+=~-]{1,80}(?:/[\w.@%+=~-]{1,120}){0,12})")
_INSTEAD: Final = "/tmp"  # noqa: S108  # where a scheduler starts a job whose directory it cannot enter
# How far into a line an expression is searched, in characters (judgement: a command names itself at the front).
_RANGE: Final = 500
_HEAD: Final = 60

_Failed: TypeAlias = tuple[int, str | None]  # where a step failed, and the directory that could not be entered


def demote_missing_parts(items: Sequence[EvidenceItem]) -> None:
    """Let what a job does not find be a consequence where the step that should have provided it failed before.

    Args:
        items: all items; changed in place.
    """
    missing = [item for item in items if _is_of_log(item) and any(hit.id in _MISSING for hit in item.hits)]
    if not missing:  # most cases
        return
    files: dict[int, _Failed] = {}
    packages: dict[int, _Failed] = {}
    for item in items:
        if _is_of_log(item) and not item.survived:
            _note_step(item, files, packages)
    for item in missing:
        is_file = any(hit.id in _FILES | _PARTS for hit in item.hits)
        offset, directory = (files if is_file else packages).get(item.stream, (item.offset, None))
        if offset < item.start_offset and offset < item.offset and (directory is None or _is_below(item, directory)):
            item.role, item.onset, item.explained = "cascade", Onset.NEUTRAL, True


def _is_of_log(item: EvidenceItem) -> bool:
    return item.role == "initiating" and item.line_number is not None and not item.from_scheduler


def _note_step(item: EvidenceItem, files: dict[int, _Failed], packages: dict[int, _Failed]) -> None:
    """Note of what kind of step a line says that it failed."""
    message = item.message.lstrip("( ")
    if any(part in message for part in _DIRECTORY_PARTS):
        entered = _NOT_ENTERED.search(message, 0, _RANGE)
        if entered is not None:
            _keep_first(files, item, entered["dir"] or entered["cd"] or "")
            return
    if _COPY.search(message, 0, _HEAD) is not None:
        _keep_first(files, item, None)
    elif _INSTALLATION.search(message, 0, _HEAD) is not None:
        _keep_first(packages, item, None)


def _keep_first(steps: dict[int, _Failed], item: EvidenceItem, directory: str | None) -> None:
    if item.offset < steps.get(item.stream, (item.offset + 1, None))[0]:
        steps[item.stream] = item.offset, directory


def _is_below(item: EvidenceItem, directory: str) -> bool:
    """Whether every path of a line is relative, below a directory, or where a job is put instead."""
    message = item.message[:_RANGE]
    at = message.find(_INTERPRETER)
    paths = [found["path"] for found in _ABSOLUTE.finditer(message, max(at, 0))]
    places = [f"{place}/" for place in (directory, _INSTEAD) if place]
    return all(any(f"{path}/".startswith(place) for place in places) for path in paths)


def demote_unreadable(items: Sequence[EvidenceItem]) -> None:
    """Let files that cannot be read be a consequence where their log shows the page that a server sent instead.

    The page stands before the error if the download prints it, and after it if somebody looked into the file.

    Args:
        items: all items; changed in place.
    """
    pages = {item.stream for item in items if _is_page(item)}
    if not pages:  # most cases
        return
    for item in items:
        if item.stream in pages and item.role == "initiating" and not _is_page(item) and _is_unreadable(item):
            item.role, item.onset, item.explained = "cascade", Onset.NEUTRAL, True


def _is_page(item: EvidenceItem) -> bool:
    return (
        item.role == "initiating"
        and item.line_number is not None
        and any(hit.id in _ANSWERS for hit in item.hits)
        and _MARKUP.search(item.message, 0, _PAGE_RANGE) is not None
    )


def _is_unreadable(item: EvidenceItem) -> bool:
    return any(hit.id in _DAMAGED for hit in item.hits) or _UNREADABLE.search(item.message, 0, _PAGE_RANGE) is not None
