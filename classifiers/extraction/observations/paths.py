"""What a log says of a path before a line of failure names it: the job wrote there, or work on it was announced."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText

REFUSED_PATHS: Final = frozenset({"python.permission", "paths.right-lost", "python.read-only", "paths.made-read-only"})
LOST_PATHS: Final = frozenset({"python.stale-handle", "python.remote-io", "python.io-error", "paths.of-announced-work"})
_PATH: Final = re.compile(r"(?<![\w.:/])(?:/[\w.@%+=,-]{1,160}){1,16}")
_WROTE: Final = re.compile(
    r"(?i)\b(?:saved|wrote|written|stored|dumped|committed|flushed|(?:saving|writing)\b[^\n]* done)\b"
)
_NOT_DONE: Final = re.compile(
    r"(?i)\b(?:fail\w*|errors?|denied|cannot|could not|not (?:saved|written)|would|skip\w*)\b"
)
# What a program that changes rights itself says or calls.
_CHANGED_RIGHTS: Final = ("chmod", "chown", "umask", "setfacl")
_ANNOUNCED: Final = re.compile(
    r"(?i)\b(?:(?:planned|scheduled|announced|upcoming) (?:work|maintenance|downtime|outage|move|migration|upgrade)"
    r"|(?:maintenance|downtime|migration|service) (?:window|notice|announcement))\b"
)
_ANNOUNCED_WORDS: Final = ("lanned", "cheduled", "nnounce", "pcoming", "aintenance", "owntime", "igration")
_FEWEST_PARTS: Final = 2  # a directory directly below the root is of the platform
_RANGE: Final = 262_144  # characters of a log before the failure that are read (judgement)
_MOST_PLACES: Final = 200  # of one path in a log (judgement)


def was_written_before(streams: Sequence[StreamText]) -> bool:
    """Whether the log of a refused write says that something was written into the same directory before.

    The program and its user are the same as then: the directory, or how it is mounted, was changed by something else.
    """
    for text, offset, path in _paths_of(streams, REFUSED_PATHS):
        directory = path.rpartition("/")[0]
        before = text[max(0, offset - _RANGE) : offset]
        if directory.count("/") < _FEWEST_PARTS or any(word in before for word in _CHANGED_RIGHTS):
            continue
        for line in _lines_naming(before, directory + "/"):
            if path not in line and _WROTE.search(line) is not None and _NOT_DONE.search(line) is None:
                return True
    return False


def is_of_announced_work(streams: Sequence[StreamText]) -> bool:
    """Whether a log announces work on the file system of a path that failed in it."""
    for text, offset, path in _paths_of(streams, LOST_PATHS):
        before = text[max(0, offset - _RANGE) : offset]
        if not any(word in before for word in _ANNOUNCED_WORDS):
            continue
        root = "/" + path.split("/", 2)[1]
        for line in _lines_naming(before, root):
            named = _PATH.findall(line)
            if _ANNOUNCED.search(line) is not None and any((path + "/").startswith(one + "/") for one in named):
                return True
    return False


def _paths_of(streams: Sequence[StreamText], entries: frozenset[str]) -> Iterator[tuple[str, int, str]]:
    """The paths that lines of some entries name, with the log and the place of the line."""
    for stream in streams:
        if stream.is_scheduler:
            continue
        for line in stream.lines:
            if any(hit.id in entries for hit in line.hits):
                for path in _PATH.findall(line.text):
                    yield stream.text, line.offset, path


def _lines_naming(text: str, words: str) -> Iterator[str]:
    at = text.find(words)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        at = text.find(words, end)
