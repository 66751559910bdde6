"""Faults of a device that come back in another attempt of the same run, after the same step."""

from collections.abc import Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText
from classifiers.extraction.training_progress import step_of

# Faults that a program and a device cause alike.
DEVICE_FAULTS: Final = frozenset({"cuda.illegal-access", "cuda.illegal-access-on-several", "cuda.launch-failure"})
_FEWEST: Final = 2  # attempts that ended alike
_LINES: Final = 400  # of an attempt, before its fault, that are read for its last step (judgement)


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
