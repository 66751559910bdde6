"""What comes back in another attempt of the same run: faults of a device, evictions for what pods use themselves."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText
from classifiers.extraction.training_progress import step_of

# Faults that a program and a device cause alike.
DEVICE_FAULTS: Final = frozenset({"cuda.illegal-access", "cuda.illegal-access-on-several", "cuda.launch-failure"})
_FEWEST: Final = 2  # attempts that ended alike
_LINES: Final = 400  # of an attempt, before its fault, that are read for its last step (judgement)
# Evictions of a container for what it used itself.
OWN_USE: Final = frozenset(
    {"kubernetes.evicted-own-appetite", "kubernetes.evicted-own-disk", "kubernetes.own-storage-limit"}
)
_PLACED: Final = re.compile(r"Successfully assigned (?:[\w.-]{1,80}/)?(?P<pod>[\w.-]{1,120})")
_EVICTED: Final = re.compile(r"\bEvicted\b")
_AFTER: Final = 65_536  # characters after the first eviction that are read (judgement)


def is_at_same_step(streams: Sequence[StreamText]) -> bool:
    """Whether a log shows several attempts that each began again and ended with such a fault after the same step.

    What a step gives to the device is the same in each attempt; a device that fails by itself does so at any step.
    """
    return any(_ends_after_same_step(stream) for stream in streams if not stream.is_scheduler)


def _ends_after_same_step(stream: StreamText) -> bool:
    faults = [line.offset for line in stream.lines if any(hit.id in DEVICE_FAULTS for hit in line.hits)]
    if len(faults) < _FEWEST:
        return False
    last: list[int] = []
    begin = 0
    for offset in faults:
        lines = stream.text[begin:offset].split("\n")[-_LINES:]
        steps = [step for line in lines if (step := step_of(line)) is not None]
        begin = offset
        if steps and last and steps[0] > last[-1]:
            return False  # the run went on after the fault before: it ended nothing
        if steps:
            last.append(steps[-1])
    return len(last) >= _FEWEST and len(set(last)) == 1


def is_evicted_again(streams: Sequence[StreamText]) -> bool:
    """Whether a pod was placed and evicted after a container had been evicted for what it used itself."""
    for stream in streams:
        first = next((line for line in stream.lines if any(hit.id in OWN_USE for hit in line.hits)), None)
        if first is None:
            continue
        end = first.offset + len(first.text)
        placed: set[str] = set()
        for line in stream.text[end : end + _AFTER].split("\n"):
            found = _PLACED.search(line)
            if found is not None:
                placed.add(found["pod"])
            elif placed and _EVICTED.search(line) is not None and any(pod in line for pod in placed):
                return True
    return False
