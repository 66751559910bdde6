"""Hashes of log lines without the parts that differ between runs, to compare a failed run with a good one.

Times, ids, numbers, temporary paths and the tags before a message are masked. Zero and exit codes keep their value: "0
errors" and "3 errors" are different lines.
"""

import re
from hashlib import blake2b
from typing import Final

from classifiers.contracts import GoodRun

HASH_BYTES: Final = 8  # of 10**15 lines compared with 4,096 hashes, fewer than one agrees by chance
# All of these are a judgement.
ENDS: Final = 4_000  # characters at each end of a log
LAST_LINES: Final = 10
_RANGE: Final = 400  # characters of a line
_SHORTEST: Final = 12  # letters; a shorter line ("Error:") may mean anything

_TEMPORARY: Final = re.compile(r"/(?:var/)?tmp/[^\s'\":,)]+")
_VARIABLE: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
)
_NUMBER: Final = re.compile(
    r"(?P<exact>(?i:\b(?:code|status|signal|errno|xid|http|exit|returned|rc))\W{1,3}\d{1,3}\b)|(?<![\w.])0(?![\w.])"
    r"|\d+(?:\.\d+)*(?:e[+-]?\d+)?"
)
# A number that names a process or device, 0 as well as others.
_INDEX: Final = re.compile(r"(?i)\[\d{1,6}\]|\b(?:rank|gpu|device|worker|node|task|process|step|epoch)[ :=#]{0,2}\d+")
_MONTH: Final = re.compile(
    r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?=\d)"
)
_LABEL: Final = re.compile(r"^\s{0,5}\d{1,5}: ")  # srun --label
_DIGITS: Final = re.compile(r"\d+")
_FRONT: Final = re.compile(r"^(?:[#\W_]|[TZ](?=[#\W]))+")
_SPACE: Final = re.compile(r"\s+")
_LETTER: Final = re.compile(r"[^\W\d_]")


def has_line(run: GoodRun, line: str, *, at_end: bool = False) -> bool:
    """Return whether a good run printed a line, apart from header and numbers.

    Args:
        run: the good run.
        line: the line, without terminal colours.
        at_end: whether the line has to be among the last lines of one of its logs: an error that ends a log differs
            from the same error that a run survived.
    """
    found = hash_line(line, at_end=at_end)
    return found is not None and found in run.lines


def is_last_line(text: str, offset: int) -> bool:
    """Return whether the line at an offset is among the last lines of a log."""
    rest = text[offset:]
    return len(rest) < ENDS and sum(bool(line.strip()) for line in rest.split("\n")) <= LAST_LINES


def hash_line(line: str, *, at_end: bool) -> bytes | None:
    """Return the hash of a line, of a line at the end of a log another; None for a line that is too short."""
    masked = _VARIABLE.sub("<id>", _TEMPORARY.sub("<path>", _MONTH.sub("", line[:_RANGE])))
    masked = _INDEX.sub(lambda found: _DIGITS.sub("#", found[0]), _LABEL.sub("", masked))
    masked = _NUMBER.sub(lambda found: found[0] if found["exact"] or found[0] == "0" else "#", masked)
    key = _FRONT.sub("", _SPACE.sub(" ", masked)).strip()
    if len(_LETTER.findall(key)) < _SHORTEST:
        return None
    key += "\n" if at_end else ""
    return blake2b(key.encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()
