"""Lines that any run prints before its work, known by their form: settings, installed packages, modules, progress bars.

Their words are none of a failure. A line of this kind that a catalogue entry matches is read all the same, as an item.

Sources: pip, environment modules and Lmod, a shell's trace, NCCL's information, tqdm; settings in YAML, TOML and INI, one
a line or in braces.
"""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction import benign_lines
from classifiers.extraction.line_headers import without_time

_RANGE: Final = 400  # characters of a line that are read (judgement)
_FIRST_WORDS: Final = re.compile(
    r"\s{0,8}(?:[-=*_#~+\u2500\u2550]{4,}\s*$"  # a rule between blocks
    r"|(?:Collecting|Downloading|Using cached|Requirement already satisfied:|Installing collected packages:"
    r"|Successfully (?:installed|built|uninstalled)|Preparing metadata|Created wheel for|Stored in directory:"
    r"|Attempting uninstall:|Found existing installation:|Uninstalling|Looking in (?:indexes|links):) "
    r"|(?:Loading(?: requirement:)?|Unloading|Switching from) [\w+-]{1,40}/[\w.+-]{1,40}(?: |$)"
    r"|\++ (?:module|source|export|conda|set|cd) "
    r"|[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL INFO )"
)
_BAR: Final = re.compile(r"\d{1,3}%\|[^\n|]{0,200}\| ?\S{1,30}/\S{1,30} ?\[|\s{0,8}[\u2501\u2578\u257a]{4,}")
_PARTS: Final = ("%|", "\u2501")


def is_routine(line: str) -> bool:
    """Whether runs print a line before their work, whatever becomes of them."""
    line = without_time(line[:_RANGE])
    if _FIRST_WORDS.match(line) is not None or benign_lines.is_setting(line):
        return True
    return any(part in line for part in _PARTS) and _BAR.search(line) is not None


def drop_routine(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that may be about a failure; all of them where no other was printed."""
    kept = tuple(line for line in lines if not benign_lines.is_benign(line) and not is_routine(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)
