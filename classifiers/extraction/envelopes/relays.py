"""Lines that a workflow engine relays among lines of its own: what the program printed stands behind a fixed head.

An engine's log begins and ends with many lines of its own, and a short program prints few, so that no prefix is common
to most lines. The level in such a head is the engine's and says nothing of the program's line.
"""

import re
from typing import Final

from classifiers.extraction.envelopes import prefixes
from classifiers.extraction.line_headers import time_of

# Airflow: the output of a container, with the container's name, and that of a command.
_HEAD: Final = re.compile(
    rf"\[(?P<time>{prefixes.TIME.pattern})\] "
    r"\{(?:pod_manager\.py:\d{1,5}\} INFO - \[[\w.-]{1,63}\] |subprocess\.py:\d{1,5}\} INFO - )"
)
_PARTS: Final = ("{pod_manager.py:", "{subprocess.py:")
_FEWEST: Final = 2  # judgement: one line alone may be quoted


class Relay:
    """Takes the head of relayed lines off.

    Args:
        with_time: whether the time of the head is kept, since the program writes none.
    """

    def __init__(self, *, with_time: bool) -> None:
        self._with_time = with_time

    def __call__(self, line: str) -> str | None:
        """The relayed line, None for a line of the engine."""
        head = _HEAD.match(line)
        if head is None:
            return None
        rest = line[head.end() :]
        return f"{head['time']} {rest}" if self._with_time and rest else rest


def of_text(text: str) -> Relay | None:
    """What reads the relayed lines of a log, None for a log without them."""
    if not any(part in text for part in _PARTS):
        return None
    rests = [line[head.end() :] for line in text.split("\n") if (head := _HEAD.match(line)) is not None]
    if len(rests) < _FEWEST:
        return None
    return Relay(
        with_time=sum(time_of(rest) is not None for rest in rests) <= prefixes.SHARE_WITH_OWN_TIME * len(rests)
    )
