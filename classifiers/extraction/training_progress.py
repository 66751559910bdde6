"""How far a run had come: the last step and the last checkpoint that its logs show."""

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
_TRIES: Final = 5
_CHECKPOINT: Final = re.compile(
    r"(?i)(?:sav(?:ed|ing|e)|wrote|writing|stored?)\b[^\n]{0,60}?\b(?:checkpoint|model|state|ckpt)s?\b[^\n]{0,40}?"
    r"(?:\bto\b|\bat\b|\bin\b|:|=|->)\s{0,8}[\"'`]?(?P<path>[\w.:/@+-]{0,1000}[\w/]\.?[\w/-]{1,1000})"
)
_SAVED_WORDS: Final = ("saved model", "saving model", "saving state")
SAVING: Final = ("ckpt", "checkpoint", *_SAVED_WORDS)
_LOOK: Final = 65_536


def step_of(line: str) -> int | None:
    """The training step a line reports, None if none."""
    hit = None
    for hit in _STEP.finditer(line, 0, 500):  # noqa: B007 - the last one on the line counts
        pass
    return None if hit is None else int(hit["step"])


def _last_step(text: str, low: str, begin: int) -> int | None:
    """The step of the last report in the text from `begin` on; `low` is that part in lower case."""
    best: tuple[int, int] | None = None
    for word in _WORDS:
        at = len(low)
        for _ in range(_TRIES):
            at = low.rfind(word, 0 if best is None else best[0], at)
            if at < 0:
                break
            hit = _STEP_AT.match(text, begin + at)
            if hit is not None:
                best = (at, int(hit["step"]))
                break
    return None if best is None else best[1]


def find(texts: Sequence[str], landmarks: Sequence[Collection[str]] | None = None) -> Progress | None:
    """The last step and checkpoint in the last 64 KiB characters of any of the texts, None if neither is shown.

    `landmarks`: of each text what the scanner saw of `SAVING` by the way; where it saw none, nothing was saved.
    """
    step: int | None = None
    checkpoint: str | None = None
    for place, text in enumerate(texts):
        begin = max(0, len(text) - _LOOK)
        low = text[begin:].lower()
        if len(low) != len(text) - begin:
            continue  # letters that grow when lowered: positions would not agree
        found = _last_step(text, low, begin)
        if found is not None and (step is None or found > step):
            step = found
        if landmarks is not None and not any(word in landmarks[place] for word in SAVING):
            continue
        if "ckpt" in low or "checkpoint" in low or ("sav" in low and any(word in low for word in _SAVED_WORDS)):
            for hit in _CHECKPOINT.finditer(text, begin):
                if "/" in hit["path"] or "." in hit["path"]:
                    checkpoint = hit["path"]
    if step is None and checkpoint is None:
        return None
    return Progress(step=step, checkpoint=checkpoint)
