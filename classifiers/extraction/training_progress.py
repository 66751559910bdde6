"""Progress of a run: the last step and the last checkpoint that its logs show."""

import re
from collections.abc import Collection, Sequence
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
_LINE_RANGE: Final = 500


def step_of(line: str) -> int | None:
    """The training step a line reports, None if none."""
    steps = [found["step"] for found in _STEP.finditer(line, 0, _LINE_RANGE)]
    return int(steps[-1]) if steps else None


def _last_step(text: str, low: str, begin: int) -> int | None:
    """The last step reported in a text from `begin` on; `low` is that part in lower case."""
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
    return None if best is None else best[1]


def find_progress(texts: Sequence[str], landmarks: Sequence[Collection[str]] | None = None) -> Progress | None:
    """The last step and checkpoint near the end of any of the texts, None if neither is shown.

    Args:
        texts: the logs; the last 65,536 characters of each are read.
        landmarks: of each log the landmarks that the scanner saw. Without one of `SAVING` no checkpoint is searched.
    """
    step: int | None = None
    checkpoint: str | None = None
    for index, text in enumerate(texts):
        begin = max(0, len(text) - _END_LENGTH)
        low = text[begin:].lower()
        if len(low) != len(text) - begin:
            continue  # some letters get longer in lower case: positions would not agree
        found = _last_step(text, low, begin)
        if found is not None and (step is None or found > step):
            step = found
        if landmarks is None or any(word in landmarks[index] for word in SAVING):
            checkpoint = _last_checkpoint(text, low, begin) or checkpoint
    if step is None and checkpoint is None:
        return None
    return Progress(step=step, checkpoint=checkpoint)


def _last_checkpoint(text: str, low: str, begin: int) -> str | None:
    """The last path in a text from `begin` on to which a checkpoint was saved; `low` is that part in lower case."""
    if not ("ckpt" in low or "checkpoint" in low or ("sav" in low and any(word in low for word in _SAVED_WORDS))):
        return None
    paths = [found["path"] for found in _CHECKPOINT.finditer(text, begin)]
    return next((path for path in reversed(paths) if "/" in path or "." in path), None)
