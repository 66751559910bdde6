"""Whether a program's own reports of its memory grew over the run until it was ended for it."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from classifiers.extraction.stream_reader import StreamText

ENDED_FOR_MEMORY: Final = frozenset({
    "slurm.oom", "kubernetes.oomkilled", "kernel.oom-cgroup", "pytorch.dataloader-killed", "ray.oom", "shell.exit-137",
    "pytorch.elastic-sigkill", "shell.rank-killed", "shell.killed",
})  # fmt: skip
# What a program prints of the memory of the host that its processes hold: not of a device, and no limit.
_HELD: Final = re.compile(
    r"(?i)\b(?:rss|uss|pss|(?:host|cpu|system|process|main|worker)[ _-]?(?:mem(?:ory)?|ram)|ram|mem(?:ory)?)"
    r"(?:[ _](?:used|usage|in use))?[ :=]{1,3}(?P<value>\d{1,9}(?:\.\d{1,4})?) ?(?P<unit>[KMGT])i?B?\b"
)
_WORDS: Final = ("rss", "RSS", "mem", "Mem", "MEM", "ram", "RAM", "uss", "USS", "pss", "PSS")
_OF_DEVICE: Final = re.compile(r"(?i)\b(?:gpu|cuda|device|alloc\w*|reserved|vram|hbm|peak\w*|max\w*)\b|\bfree\b")
_UNITS: Final = {"K": 1.0, "M": 1e3, "G": 1e6, "T": 1e9}
_RANGE: Final = 262_144  # characters of a log that are read (judgement)
_LINE: Final = 400
# Judgement: what grows in so many reports, hardly ever shrinks, and becomes so many times as large does not stop.
_FEWEST: Final = 6
_GREW: Final = 1.5
_STILL_GREW: Final = 1.1  # in its second half
_MOST_SHRINKS: Final = 0.1


def grew_without_end(streams: Sequence[StreamText]) -> bool:
    """Whether the logs report memory of the program that grew from report to report until the end."""
    return any(
        _grows(values)
        for stream in streams
        if not stream.is_scheduler and any(word in stream.text for word in _WORDS)
        for values in _series(stream.text[-_RANGE:])
    )


def _series(text: str) -> list[list[float]]:
    """The sizes that lines report, in kB: those at the same place of a line together."""
    series: dict[int, list[float]] = defaultdict(list)
    for line in text.split("\n"):
        if not any(word in line for word in _WORDS) or _OF_DEVICE.search(line, 0, _LINE) is not None:
            continue
        for place, found in enumerate(_HELD.finditer(line, 0, _LINE)):
            series[place].append(float(found["value"]) * _UNITS[found["unit"].upper()])
    return list(series.values())


def _grows(values: Sequence[float]) -> bool:
    if len(values) < _FEWEST or values[-1] < _GREW * values[0] or values[-1] < max(values):
        return False
    half = values[len(values) // 2]
    shrinks = sum(later < earlier for earlier, later in pairwise(values))
    return shrinks <= _MOST_SHRINKS * len(values) and values[0] < half and _STILL_GREW * half <= values[-1]
