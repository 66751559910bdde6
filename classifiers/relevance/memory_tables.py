"""The kernel's table of processes, which it prints when memory is out: who held most, and who was killed."""

import re
from collections.abc import Sequence
from typing import Final

# Linux, mm/oom_kill.c, dump_tasks: "[  pid  ]   uid  tgid total_vm      rss ... oom_score_adj name"; rss in pages.
_ROW: Final = re.compile(
    r"\[ *(?P<pid>\d{1,9})\] +\d{1,10} +(?P<tgid>\d{1,9}) +\d{1,15} "
    r"+(?P<rss>\d{1,15}) [\d -]{1,120} (?P<name>\S[^\n]{0,40})"
)
_KILLED: Final = re.compile(r"\bKilled process (?P<pid>\d{1,9}) \((?P<name>[^)\n]{1,40})\)")
_MORE: Final = 2.0  # judgement: so many times as much is no accident of the moment


def holds_more_than_killed(texts: Sequence[str]) -> bool:
    """Whether a process of another name held several times the memory of all that are called like the killed one.

    Such a process is protected from the kernel, as services of the system are, which then kills the next largest one.

    Args:
        texts: the events of one node.
    """
    killed = next((found["name"] for text in texts if (found := _KILLED.search(text)) is not None), None)
    if killed is None:
        return False
    held: dict[str, int] = {}
    for text in texts:
        row = _ROW.search(text)
        if row is not None:
            name = row["name"].strip()
            held[name] = held.get(name, 0) + int(row["rss"])
    own = held.pop(killed, 0)
    return own > 0 and max(held.values(), default=0) > _MORE * own
