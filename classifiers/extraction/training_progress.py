"""Progress of a run: the last step and the last checkpoint that its logs show."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Final

from classifiers.contracts import Progress

_STEP: Final = re.compile(
    r"(?i)(?:\b(?:global[_ ]?)?(?:step|iteration|iter|update|batch)s?[\"']?\s{0,8}[:=#\[(]{0,2}\s{0,8}"
    r"|num_updates\s{1,8})"
    r"(?P<step>\d{1,12})(?![\d.]{0,20}\s{0,8}(?:ms|s/|it/s|GB|GiB|MB))"
)
_STEP_AT: Final = re.compile(
    r"(?i)(?:step|iteration|iter|update|batch)s?[\"']?\s{0,8}[:=#\[(]{0,2}\s{0,8}(?P<step>\d{1,12})"
    r"(?![\d.]{0,20}\s{0,8}(?:ms|s/|it/s|GB|GiB|MB))"
)
_LINE_TIME: Final = re.compile(r"[\[({]?(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)")
_WORDS: Final = ("step", "iter", "update", "batch")
_MOST_TRIES: Final = 5
_CHECKPOINT: Final = re.compile(
    r"(?i)(?:sav(?:ed|ing|e)|wrote|writing|stored?)\b[^\n]{0,60}?\b(?:checkpoint|model|state|ckpt)s?\b[^\n]{0,40}?"
    r"(?:\bto\b|\bat\b|\bin\b|:|=|->)\s{0,8}[\"'`]?(?P<path>[\w.:/@+-]{0,1000}[\w/]\.?[\w/-]{1,1000})"
)
_SAVED_WORDS: Final = ("saved model", "saving model", "saving state")
SAVING: Final = ("ckpt", "checkpoint", *_SAVED_WORDS)
# Limits of what is read, in characters (judgement).
_END_LENGTH: Final = 65_536
_NEAR_LENGTH: Final = 2_000
_LINE_RANGE: Final = 500


def step_of(line: str) -> int | None:
    """The training step a line reports, None if none."""
    steps = [found["step"] for found in _STEP.finditer(line, 0, _LINE_RANGE)]
    return int(steps[-1]) if steps else None


def _last_step(text: str, low: str, begin: int) -> tuple[int, int] | None:
    """The position and number of the last step in a text from `begin` on; `low` is that part in lower case."""
    best: tuple[int, int] | None = None
    for word in _WORDS:
        at = len(low)
        for _ in range(_MOST_TRIES):
            at = low.rfind(word, 0 if best is None else best[0], at)
            if at < 0:
                break
            found = _STEP_AT.match(text, begin + at)
            if found is not None:
                best = (at, int(found["step"]))
                break
    return None if best is None else (begin + best[0], best[1])


def _time_of_line(text: str, position: int) -> datetime | None:
    """The time at the beginning of the line at a position, in UTC if it names no zone; None without one."""
    found = _LINE_TIME.match(text, text.rfind("\n", 0, position) + 1)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found["at"])
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def find_progress(texts: Sequence[str], landmarks: Sequence[AbstractSet[str]] | None = None) -> Progress | None:
    """The last step and checkpoint near the end of any of the texts, None if neither is shown.

    The time is that of the last step; None with a checkpoint, because the time of a checkpoint is not known.

    Args:
        texts: the logs; the last 65,536 characters of each are read.
        landmarks: of each log the landmarks that the scanner saw. Without one of `SAVING` no checkpoint is searched.
    """
    step: int | None = None
    checkpoint: str | None = None
    at: datetime | None = None
    for index, text in enumerate(texts):
        begin = max(0, len(text) - _END_LENGTH)
        saves = landmarks is None or not landmarks[index].isdisjoint(SAVING)
        found = None
        if text.isascii() and not saves:  # most logs: no more is read than the step needs
            near = max(begin, len(text) - _NEAR_LENGTH)
            found = _last_step(text, text[near:].lower(), near)
        if found is None:
            low = text[begin:].lower()
            if len(low) != len(text) - begin:
                continue  # some letters get longer in lower case: positions would not agree
            found = _last_step(text, low, begin)
            checkpoint = (_last_checkpoint(text, low, begin) if saves else None) or checkpoint
        if found is not None and (step is None or found[1] > step):
            step, at = found[1], _time_of_line(text, found[0])
    if step is None and checkpoint is None:
        return None
    return Progress(step=step, checkpoint=checkpoint, at=None if checkpoint else at)


def _last_checkpoint(text: str, low: str, begin: int) -> str | None:
    """The last path in a text from `begin` on to which a checkpoint was saved; `low` is that part in lower case."""
    if not ("ckpt" in low or "checkpoint" in low or ("sav" in low and any(word in low for word in _SAVED_WORDS))):
        return None
    paths = [found["path"] for found in _CHECKPOINT.finditer(text, begin)]
    return next((path for path in reversed(paths) if "/" in path or "." in path), None)
