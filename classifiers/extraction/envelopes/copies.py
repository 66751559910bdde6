"""Logs of one process that hold nothing of their own: the same log given as its output and as its errors.

Schedulers write both to one file by default, and event sources then name that file twice; `tee` writes one of them into
the other. Read twice, a line counts as two reports of two writers.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from classifiers.contracts import LogStream, RawCase


def without_copies(raw: RawCase) -> RawCase:
    """A case without logs whose lines all are in another log of the same process; the same object without such logs."""
    processes: defaultdict[tuple[int | None, str | None], list[int]] = defaultdict(list)
    for place, stream in enumerate(raw.streams):
        if stream.text and not stream.text.isspace():
            processes[stream.rank, stream.node].append(place)
    copies = {place for places in processes.values() for place in _copies_among(raw.streams, places)}
    if not copies:
        return raw
    return replace(raw, streams=tuple(one for place, one in enumerate(raw.streams) if place not in copies))


def _copies_among(streams: Sequence[LogStream], places: Sequence[int]) -> list[int]:
    """Which logs of one process have nothing that another one of them lacks."""
    if len({streams[place].stream for place in places}) < 2:  # noqa: PLR2004 - a log and its copy
        return []
    if len(places) == 2:  # noqa: PLR2004 - output and errors, as of most processes: seldom the same, which one line tells
        return [place for place in places if any(_is_copy(streams, place, other) for other in places)]
    # Of many logs, only those are compared that have the line which the fewest of them have.
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place in places:
        for line in _lines(streams[place].text):
            holders[line].append(place)
    rarest = {place: min((holders[line] for line in _lines(streams[place].text.strip())), key=len) for place in places}
    return [place for place in places if any(_is_copy(streams, place, other) for other in rarest[place])]


def _is_copy(streams: Sequence[LogStream], place: int, other: int) -> bool:
    """Whether one log has nothing that another log of its process lacks; of two that are equal the later one."""
    one, whole = streams[place], streams[other]
    if place == other or one.stream == whole.stream or len(one.text) > len(whole.text):
        return False
    if len(one.text) == len(whole.text) and place < other:
        return False
    text = one.text.strip()
    if text.partition("\n")[0].strip() not in whole.text:
        return False
    known = _lines(whole.text)
    return all(line.strip() in known for line in text.split("\n"))


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.split("\n")}
