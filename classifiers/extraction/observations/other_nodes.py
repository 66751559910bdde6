"""What differs between the nodes of a job: paths, libraries, and versions of parts that the platform provides."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction.stream_reader import StreamText, lines_with

NOT_THERE: Final[frozenset[str]] = frozenset(
    {"python.file-not-found", "python.not-found-file", "tensorflow.notfound-path", "wordings.not-there"}
)
NOT_INSTALLED: Final[frozenset[str]] = frozenset(
    {
        "python.module-not-found",
        "python.shared-object",
        "python.undefined-symbol",
        "python.glibc-version",
        "cuda.missing-cuda-lib",
    }
)
_PATH: Final = re.compile(r"['\"\s:=(](?P<path>/[\w.@%+=-]{1,80}(?:/[\w.@%+=-]{1,120}){0,12})")
# A row of a list of mounted file systems, by df or mount, and what a program says of a path that it could read.
_MOUNTED: Final = re.compile(r"(?m)(?:\s\d{1,3}% (?P<df>/\S{0,200})$|\bon (?P<mount>/\S{1,200}) type \w)")
_READ: Final = re.compile(
    r"(?i)\b(?:found|loaded|opened|read|indexed|listed|mapped|resolved|verified|using|restored)\b"
    r"|\b\d[\d,]* (?:files|images|samples|shards|classes|records|rows|documents|bytes|MB|GB|GiB|MiB)\b"
)
# The version of a part that every node of a platform has alike, as each process prints it when it starts.
_VERSION_LINES: Final = {
    "NCCL version ": re.compile(r"\bNCCL version (?P<version>\d[\w.]*)"),
    "cudaDriverVersion ": re.compile(r"\bcudaDriverVersion (?P<version>\d+)"),
    "Driver Version: ": re.compile(r"\bDriver Version: (?P<version>\d[\d.]*)"),
    "glibc": re.compile(r"\bglibc[ -=:]{1,3}(?P<version>\d[\d.]*)"),
    "OFED-internal-": re.compile(r"\bOFED-internal-(?P<version>\d[\w.-]*)"),
}


def path_on_other_nodes(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether a path that a rank does not find is there on another node, by the logs of the ranks there.

    The rank's own node has to list its file systems without the one of the path, where lists of them are compared.
    """
    for stream, line in lines_with(streams, NOT_THERE):
        node = stream.source.node
        found = _PATH.findall(line.text)
        others = [one for one in streams if node is not None and one.source.node not in {None, node}]
        if not found or any(_has_no_path(other, found) for other in others):
            continue
        here = _mounts([one for one in streams if one.source.node == node])
        there = _mounts(others)
        for path in found:
            mounted = {point for point in there if len(point) > 1 and (path + "/").startswith(point + "/")}
            if (here and mounted and mounted.isdisjoint(here)) or any(_reads(other, path) for other in others):
                return True
    return False


def _has_no_path(stream: StreamText, paths: Sequence[str]) -> bool:
    """Whether a log does not find one of some paths."""
    return any(path in line.text for _, line in lines_with([stream], NOT_THERE) for path in paths)


def _mounts(streams: Sequence[StreamText]) -> frozenset[str]:
    """Where file systems are mounted, by the lists that logs show."""
    listing = (
        stream.text for stream in streams if "% /" in stream.text or " type " in stream.text
    )  # as every match has
    found = (match for text in listing for match in _MOUNTED.finditer(text))
    return frozenset(match["df"] or match["mount"] for match in found)


def _reads(stream: StreamText, path: str) -> bool:
    """Whether a log says that something was read from a path."""
    at = stream.text.find(path)
    while at >= 0:
        begin, end = stream.text.rfind("\n", 0, at) + 1, stream.text.find("\n", at)
        line = stream.text[begin : end if end >= 0 else None]
        if _READ.search(line.replace(path, "")) is not None:
            return True
        at = stream.text.find(path, at + len(path))
    return False


def software_on_other_nodes(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether all ranks of one node lack a library or module that no rank of another node lacks.

    One rank alone may be the only one that runs a part of the program, as rank 0 often is.
    """
    lacking = {one.index for one, _ in lines_with(streams, NOT_INSTALLED)}
    logs = [
        stream
        for stream in streams
        if stream.source.node is not None and stream.source.rank is not None and stream.text
    ]
    without = {log.source.node for log in logs if log.index in lacking}
    if len(without) != 1 or not any(log.source.node not in without for log in logs):
        return False
    ranks = [log for log in logs if log.source.node in without]
    return all(log.index in lacking for log in ranks) and (len(ranks) > 1 or ranks[0].source.rank != 0)


def versions_differ(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether the nodes of a job print different versions of a part that the platform gives to all of them."""
    for words, pattern in _VERSION_LINES.items():
        by_node: dict[str, set[str]] = {}
        for stream in streams:
            if stream.source.node is not None and words in stream.text:
                by_node.setdefault(stream.source.node, set()).update(pattern.findall(stream.text))
        seen = [versions for versions in by_node.values() if versions]
        if any(versions.isdisjoint(seen[0]) for versions in seen[1:]):
            return True
    return False
