"""How far a run had come: the last step and the last checkpoint that its logs show."""

import re
from typing import Final

from classifiers.case import Progress

_STEP: Final = re.compile(
    r"(?i)(?:\b(?:global[_ ]?)?(?:step|iteration|iter|update|batch)s?[\"']?\s*[:=#\[(]{0,2}\s*|num_updates\s+|it/s.*?\bstep\s+)"
    r"(?P<step>\d{1,12})(?![\d.]*\s*(?:ms|s/|it/s|GB|GiB|MB))"
)
_CHECKPOINT: Final = re.compile(
    r"(?i)(?:sav(?:ed|ing|e)|wrote|writing|stored?)\b[^\n]{0,60}?\b(?:checkpoint|model|state|ckpt)s?\b[^\n]{0,40}?"
    r"(?:\bto\b|\bat\b|\bin\b|:|=|->)\s*[\"'`]?(?P<path>[\w.:/@+-]*[\w/]\.?[\w/-]+)"
)
_CHECKPOINT_WORDS: Final = ("checkpoint", "ckpt", "saved model", "saving model", "saving state")
_LOOK: Final = 65_536


def step_of(line: str) -> int | None:
    """The training step a line reports, None if none."""
    hit = None
    for hit in _STEP.finditer(line, 0, 500):  # noqa: B007 - the last one on the line counts
        pass
    return None if hit is None else int(hit["step"])


def steps_after(text: str, offset: int, most: int = 20_000) -> int:
    """How many different, growing steps are reported in the stretch after `offset`."""
    count, last = 0, -1
    for hit in _STEP.finditer(text, offset, min(len(text), offset + most)):
        step = int(hit["step"])
        if step > last:
            count += last >= 0
            last = step
    return count


def find(texts: list[str]) -> Progress | None:
    """The last step and checkpoint in the last 64 KiB characters of any of the texts, None if neither is shown."""
    step: int | None = None
    checkpoint: str | None = None
    for text in texts:
        begin = max(0, len(text) - _LOOK)
        low = text[begin:].lower()
        if "step" in low or "iter" in low or "update" in low or "batch" in low:
            stop = len(text)
            for _ in range(40):  # the last report stands near the end: look at pieces from the back
                start = max(begin, stop - 2_000)
                hit = None
                for hit in _STEP.finditer(text, start, stop):  # noqa: B007 - the last one counts
                    pass
                if hit is not None:
                    found = int(hit["step"])
                    if step is None or found > step:
                        step = found
                    break
                if start == begin:
                    break
                stop = start
        if any(word in low for word in _CHECKPOINT_WORDS):
            for hit in _CHECKPOINT.finditer(text, begin):
                if "/" in hit["path"] or "." in hit["path"]:
                    checkpoint = hit["path"]
    if step is None and checkpoint is None:
        return None
    return Progress(step=step, checkpoint=checkpoint)
