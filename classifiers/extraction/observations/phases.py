"""Phases of a run beside its steps, as logs show them: reading, saving, and what goes on while nobody steps."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText
from classifiers.extraction.training_progress import first_slow

# How long a step waited for its data, as timm, MMEngine and other programs print it.
_DATA: Final = re.compile(
    r"(?i)\bdata(?:[_ -]?(?:time|load(?:ing)?|wait))?(?: ?\((?:s|sec|ms)\))?[:= ]{1,3}(?P<value>\d{1,6}\.\d{1,6})"
)
# How long it took to save a checkpoint.
_SAVED: Final = re.compile(
    r"(?i)\b(?:sav(?:ed|ing|e)|wrote|writ(?:ten|ing))\b[^\n]{0,200}\b(?:checkpoint|ckpt|state)[^\n]{0,300}?"
    r"(?P<value>\d{1,6}(?:\.\d{1,6})?) ?s(?:ec(?:onds)?)?\b"
)
_DATA_WORDS: Final = ("data", "Data")
_SAVE_WORDS: Final = ("checkpoint", "Checkpoint", "ckpt")
_LEAST_S: Final = 1.0  # judgement: less is no trouble for a step
_RANGE: Final = 262_144  # characters of a log that are read (judgement)
_COUNT: Final = re.compile(r"\b(?P<count>\d{1,9}) ?/ ?(?P<total>\d{1,9})\b")
_FEWEST_COUNTS: Final = 3  # judgement
# A progress bar of tqdm or Rich with its count, the time since it began and the time that is left.
_BAR: Final = re.compile(
    r"(?P<count>\d{1,12})/(?P<total>\d{1,12}) \[(?P<elapsed>(?:\d{1,3}:)?\d{1,2}:\d\d)"
    r"<(?P<left>(?:\d{1,5}:)?\d{1,2}:\d\d)"
)
# How long a rank waited, as a watchdog says.
_WAITED: Final = re.compile(r"ran for (?P<waited>\d{4,9}) milliseconds before timing out")
# Judgement: how far the time of a bar may differ from that of the wait with which it began.
_SAME_TIME: Final = 0.1
COLLECTIVE_TIMEOUTS: Final = frozenset({"pytorch.nccl-watchdog-timeout"})
MISSED_HEARTBEATS: Final = frozenset({"toolboxes.heartbeat-missed"})


def has_slow_storage(streams: Sequence[StreamText]) -> bool:
    """Whether reading data or saving checkpoints took several times as long in the end as before."""
    texts = [stream.text[-_RANGE:] for stream in streams if not stream.is_scheduler]
    return any(
        _grew(pattern, text)
        for text in texts
        for pattern, words in ((_DATA, _DATA_WORDS), (_SAVED, _SAVE_WORDS))
        if any(word in text for word in words)
    )


def _grew(pattern: re.Pattern[str], text: str) -> bool:
    values = [float(found["value"]) for found in pattern.finditer(text)]
    place = first_slow(values)
    return place is not None and min(values[place:]) >= _LEAST_S


def is_alive_when_given_up(streams: Sequence[StreamText]) -> bool:
    """Whether a log shows a count that grows, up to the line by which a monitor gives its process up."""
    return any(
        any(hit.id in MISSED_HEARTBEATS for hit in line.hits) and _counts_before(stream.text, line.offset)
        for stream in streams
        if not stream.is_scheduler
        for line in stream.lines
    )


def _counts_before(text: str, offset: int) -> bool:
    """Whether the last lines before a place count towards one total."""
    lines = text[max(0, offset - 2_000) : offset].rstrip("\n").split("\n")[-_FEWEST_COUNTS:]
    counts = [match for match in map(_COUNT.search, lines) if match is not None]
    if len(counts) < _FEWEST_COUNTS or len({count["total"] for count in counts}) != 1:
        return False
    numbers = [int(count["count"]) for count in counts]
    return numbers == sorted(set(numbers))


def works_while_others_wait(streams: Sequence[StreamText]) -> bool:
    """Whether a progress bar began when the other ranks began to wait, and advanced until they gave up."""
    texts = [stream.text[-_RANGE:] for stream in streams if not stream.is_scheduler]
    waits = [int(found["waited"]) / 1_000 for text in texts for found in _WAITED.finditer(text)]
    if not waits:
        return False
    bars = [found for text in texts if "<" in text for found in _BAR.finditer(text)]
    return any(
        0 < int(bar["count"]) < int(bar["total"])
        and any(abs(_seconds(bar["elapsed"]) - waited) <= _SAME_TIME * waited for waited in waits)
        and _seconds(bar["left"]) > 0
        for bar in bars
    )


def _seconds(clock: str) -> int:
    """The seconds of a time such as 1:02:03."""
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds
