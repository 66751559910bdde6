"""How much of a log stands in another one: normal lines and runs of words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from classifiers.data.labelled_cases import LabelledCase

SHINGLE = 5
MOST_SHARED = 0.8
# Below this many shingles a log is one message that software prints alike everywhere; the line rule covers it.
LEAST_SHINGLES = 10


def normal(line: str) -> str:
    return re.sub(r"\W+", " ", line).strip().lower()


def texts(case: LabelledCase) -> Iterator[str]:
    yield from (stream.text for stream in case.raw.streams)
    yield from (event.text for event in case.raw.node_events)


def _shingles(text: str) -> set[int]:
    """Hashes of the runs of words: they take less memory than the words."""
    words = normal(text).split()
    return set(map(hash, zip(*(words[at:] for at in range(SHINGLE)), strict=False)))


def close_pairs(
    cases: Iterable[LabelledCase], logs: Sequence[str], *, least: int | Sequence[int] = LEAST_SHINGLES
) -> list[tuple[str, int, int]]:
    """The id of a case, the number of a log and the shared shingles, where one is mostly part of the other.

    Args:
        cases: the cases.
        logs: the logs.
        least: a case or log of fewer shingles is not looked for in the others; one number, or one for each log.
    """
    leasts = [least] * len(logs) if isinstance(least, int) else least
    measured = [_shingles(log) for log in logs]
    of_logs = set().union(*measured)
    compared = []
    for case in cases:
        own = _shingles("\n".join(texts(case)))
        compared.append((case.id, len(own), own & of_logs))
    # Only what cases and logs have in common is indexed: that is a tenth of what the logs have.
    of_both = set().union(*(common for _, _, common in compared))
    by_shingle: dict[int, list[int]] = {}
    for number, shingles in enumerate(measured):
        for shingle in shingles & of_both:
            by_shingle.setdefault(shingle, []).append(number)
    found = []
    for case_id, size, common in compared:
        shared = Counter(number for shingle in common for number in by_shingle[shingle])
        for number, count in shared.items():
            sizes = [one for one in (size, len(measured[number])) if one >= leasts[number]]
            if any(count > MOST_SHARED * one for one in sizes):
                found.append((case_id, number, count))
    return found
