"""Pods that Kubernetes started in place of one that it had evicted, and evicted as well."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText

OWN_USE: Final = frozenset(
    {"kubernetes.evicted-own-appetite", "kubernetes.evicted-own-disk", "kubernetes.own-storage-limit"}
)
_PLACED: Final = re.compile(r"Successfully assigned (?:[\w.-]{1,80}/)?(?P<pod>[\w.-]{1,120})")
_EVICTED: Final = re.compile(r"\bEvicted\b")
_MOST: Final = 65_536  # characters after the first eviction that are read (judgement)


def is_evicted_again(streams: Sequence[StreamText]) -> bool:
    """Whether a pod was placed and evicted after a container had been evicted for what it used itself."""
    for stream in streams:
        first = next((line for line in stream.lines if any(hit.id in OWN_USE for hit in line.hits)), None)
        if first is None:
            continue
        end = first.offset + len(first.text)
        placed: set[str] = set()
        for line in stream.text[end : end + _MOST].split("\n"):
            found = _PLACED.search(line)
            if found is not None:
                placed.add(found["pod"])
            elif placed and _EVICTED.search(line) is not None and any(pod in line for pod in placed):
                return True
    return False
