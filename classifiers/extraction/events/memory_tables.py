"""Who held most of a node's memory when it was out, by the kernel's table of processes or by what a monitor says."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.relevance.event_objects import TRAINING_PROGRAMS
from classifiers.relevance.own_nodes import MOST_GPUS
from classifiers.relevance.words_in_text import is_word_in

# Linux, mm/oom_kill.c, dump_tasks: "[  pid  ]   uid  tgid total_vm      rss ... oom_score_adj name"; rss in pages.
_ROW: Final = re.compile(
    r"\[ *(?P<pid>\d{1,9})\] +\d{1,10} +(?P<tgid>\d{1,9}) +\d{1,15} "
    r"+(?P<rss>\d{1,15}) [\d -]{1,120} (?P<name>\S[^\n]{0,40})"
)
KILLED_WORDS: Final = "Killed process"
"""Part of what a kernel says of a process that it killed."""
_KILLED: Final = re.compile(r"\bKilled process (?P<pid>\d{1,9}) \((?P<name>[^)\n]{1,40})\)")
_HELD_BY_KILLED: Final = re.compile(r"\banon-rss:(?P<size>\d{1,15})kB")
# What monitors and agents say of a program or pod: "ledger-db-0 (team-b) rss 1.2TiB", "java using 410 GiB".
_HOLDS: Final = re.compile(
    r"(?i)\b(?P<name>[a-z][\w.-]{2,80})(?: \([^)\n]{0,160}\))?(?: on [\w.-]{2,80})?[,:]? "
    r"(?:rss|res|resident|working set|memory|mem|uses|using|holds|holding)[ :=]{1,3}"
    r"(?P<size>\d{1,6}(?:\.\d{1,3})?) ?(?P<unit>[MGT])i?B?\b"
)
_OWN_LIMIT: Final = "Memory cgroup out of memory"
_PAGE_KB: Final = 4  # of x86 and of most kernels for other processors
_KB: Final = {"M": 1e3, "G": 1e6, "T": 1e9}
_COMMON: Final = frozenset({"node", "host", "total", "system", "swap", "cgroup", "container", "pod", "top", "limit"})
_MORE: Final = 2.0  # judgement: so many times as much is no accident of the moment


def _killed(text: str) -> re.Match[str] | None:
    """The process that a kernel says it killed."""
    return _KILLED.search(text) if KILLED_WORDS in text else None  # few events say so


def holds_more_than_killed(texts: Sequence[str]) -> bool:
    """Whether a process of another name held several times the memory of all that are called like the killed one.

    Such a process is protected from the kernel, as services of the system are, which then kills the next largest one.

    Args:
        texts: the events of one node.
    """
    killed = next((found["name"] for text in texts if (found := _killed(text)) is not None), None)
    if killed is None:
        return False
    held: dict[str, int] = {}
    for text in texts:
        row = _ROW.search(text)
        if row is not None:
            name = row["name"].strip()
            held[name] = held.get(name, 0) + int(row["rss"])
    own = held.pop(killed, 0)
    most = max(held.values(), default=0)
    if own > 0:
        return most > _MORE * own
    # Rows of a table get lost: the message of the kill itself says what one process held.
    sizes = [
        int(found["size"]) for text in texts if _killed(text) is not None for found in _HELD_BY_KILLED.finditer(text)
    ]
    return bool(sizes) and most * _PAGE_KB > max(sizes) * MOST_GPUS and _is_of_node(texts)


def _is_of_node(texts: Sequence[str]) -> bool:
    """Whether the node was out of memory: a process that reached a limit of its own was killed for that."""
    return any(_killed(text) is not None and _OWN_LIMIT not in text for text in texts)


def is_held_by_stranger(texts: Sequence[str], logs: Sequence[str]) -> bool:
    """Whether a report says that something held more memory than all processes like the killed one could.

    Args:
        texts: the events of one node.
        logs: the logs of the job. They name its own pods and programs.
    """
    killed = [text for text in texts if _killed(text) is not None]
    # Who reached a limit of its own was killed for it, however full the node is.
    of_node = (text for text in killed if _OWN_LIMIT not in text)
    sizes = [int(found["size"]) for text in of_node if (found := _HELD_BY_KILLED.search(text)) is not None]
    if not sizes:
        return False
    most = max(sizes) * MOST_GPUS  # one process a GPU
    reports = (found for text in texts if text not in killed for found in _HOLDS.finditer(text))
    return any(
        float(report["size"]) * _KB[report["unit"].upper()] > most
        and report["name"].lower() not in _COMMON
        and not report["name"].startswith(TRAINING_PROGRAMS)
        and not any(is_word_in(report["name"], log) for log in logs)
        for report in reports
    )
