"""Other surroundings for composed cases: what stands around a failure in a paste tells of the asker's habits alone.

Versions, imports, commands and notices are pasted with failures of every kind, yet a corpus has some of them beside
some kinds only, and a model would learn them as signs of these. So most copies of a text that was composed for its
symptom lose some such lines and get some of another case, of any symptom.
"""

import random
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from classifiers.dataset import NONE, LabelledCase

_SURROUNDING: Final = re.compile(
    r"==\s?\d|\bversions?\b|(?<![\d.])\d+\.\d+\.\d+(?![\d.])"
    r"|\b(?:cuda|cudnn|python|pytorch|torch|tensorflow|tf|keras|horovod|nccl|driver)\b ?[:=v]* ?\d+\.\d"
    r"|^\s*(?:import|from) \w"
    r"|^(?:\$|python3?|mpirun|mpiexec|horovodrun|torchrun|deepspeed|accelerate|CUDA_VISIBLE|export) "
    r"|^[|+]"  # tables of cards
    r"|\b(?:INFO|WARNING|NOTE)\b",
    re.IGNORECASE,
)
_OF_FAILURE: Final = re.compile(
    "error|fail|abort|exception|traceback|killed|cannot|can't|unable|timeout|timed|refused|hang|stuck|nan|slow|worse|"
    r"better|loss|acc|speed|memory|oom|leak|differ|wrong|crash|bug|problem|issue|works|runs|\b(?:not|no|only|never|wait\w*)\b",
    re.IGNORECASE,
)
_LONGEST: Final = 160
_CHANGED: Final = 0.75
_LOST: Final = 0.3
_MOST: Final = 6
_FIRST_COPY: Final = "-0"


def is_surrounding(line: str) -> bool:
    """Whether a line is pasted beside failures of any kind, and says nothing of one."""
    plain = line.isascii() and len(line) < _LONGEST
    return plain and bool(_SURROUNDING.search(line)) and not _OF_FAILURE.search(line)


def _may_change(case: LabelledCase) -> bool:
    given, label = case.provenance, case.labels.best["symptom"]
    return (
        given.get("origin") == "composed"
        and given.get("about") == "symptom"
        and label not in {None, NONE}
        and len(case.raw.streams) == 1
    )


def _lines(case: LabelledCase) -> list[str]:
    return case.raw.streams[0].text.split("\n")


def _changed(case: LabelledCase, pools: Sequence[Sequence[list[str]]]) -> LabelledCase:
    draw = random.Random(zlib.crc32(case.id.encode()))  # noqa: S311 - no secret: it is to come out the same again
    if draw.random() >= _CHANGED:
        return case
    first, *rest = _lines(case)
    own = [first, *(line for line in rest if not (is_surrounding(line) and draw.random() < _LOST))]
    others = draw.choice(draw.choice(pools))
    many = draw.randint(1, min(_MOST, len(others)))
    begin = draw.randint(0, len(others) - many)
    place = draw.choice((len(own), len(own), 1, draw.randint(0, len(own))))
    text = "\n".join([*own[:place], *others[begin : begin + many], *own[place:]])
    return replace(case, raw=replace(case.raw, streams=(replace(case.raw.streams[0], text=text),)))


def _pools(cases: Iterable[LabelledCase]) -> Mapping[str, list[list[str]]]:
    """Of each symptom the surrounding lines of its cases."""
    pools: dict[str, list[list[str]]] = defaultdict(list)
    for case in cases:
        if found := [line for line in _lines(case) if is_surrounding(line)]:
            pools[str(case.labels.best["symptom"])].append(found)
    return pools


def changed(cases: Sequence[LabelledCase]) -> Iterator[LabelledCase]:
    """The cases in their order; of texts composed for a symptom most copies but the first with other surroundings.

    The same cases come out the same: what is drawn hangs on a case's id.
    """
    pools = _pools(case for case in cases if _may_change(case))
    drawn = [pools[symptom] for symptom in sorted(pools)]
    for case in cases:
        copied = drawn and _may_change(case) and not case.id.endswith(_FIRST_COPY)
        yield _changed(case, drawn) if copied else case
