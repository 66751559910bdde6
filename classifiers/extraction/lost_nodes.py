"""The node that a launcher, scheduler or controller reports as lost: it is not the one whose log has the report."""

import re
from collections.abc import Iterable
from typing import Final

from classifiers.node_names import short_name

_NAME: Final = r"[\"']?([A-Za-z0-9][\w.-]{1,100}[\w])(?![\[,\w])"
_GONE: Final = r"(?:down|lost|dead|gone|unreachable|marked (?:down|dead))"
_LOST: Final = (
    # Slurm, srun and slurmctld
    re.compile(rf"(?i)\b(?:node failure on|on failed node|failure of node|from batch node) {_NAME}"),
    re.compile(rf"(?i)\bnodes? {_NAME} (?:is |are )?(?:not responding|set down|{_GONE})\b"),
    re.compile(rf"(?i)\b(?:launch|step|task)\b[^\n]{{0,60}} failed on node {_NAME}"),
    # PBS, LSF, and what schedulers of other makes say
    re.compile(rf"(?i)\bv?(?:node|host) {_NAME} (?:has |is |went |was |became )?(?:been )?{_GONE}\b"),
    # Open MPI and PRRTE
    re.compile(rf"(?i)\bdaemon\b[^\n]{{0,40}} (?:died|failed|quit)[^\n]{{0,20}} on node {_NAME}"),
    re.compile(rf"\bwith PID \d{{1,8}} on node {_NAME} exited on signal"),
    # Ray
    re.compile(rf"\bnode name: {_NAME} has been marked dead"),
)
_WORDS: Final = ("node", "Node", "host", "Host", "daemon")


def lost_node(line: str, nodes: Iterable[str]) -> str | None:
    """The node of the job that a line reports as lost; None where it names none, or several.

    Args:
        line: the line.
        nodes: the nodes of the job.
    """
    if not any(word in line for word in _WORDS):
        return None
    found = {short_name(name) for one in _LOST for hit in one.finditer(line, 0, 2_000) for name in hit.groups() if name}
    named = [node for node in nodes if short_name(node) in found]
    return named[0] if len(named) == 1 else None
