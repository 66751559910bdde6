"""The nodes of a job by the words of its scheduler: those that have sent no log are nodes of the job as well."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.node_names import short_name, written_out

MOST_GPUS: Final = 8  # of a node, in nearly all machines for training
FRONT_OF_LOG: Final = 40_000  # characters of a log in which its start is read (judgement)
# How Slurm, LSF, PBS and Grid Engine write the list of a job's nodes, in records and in the environment; not the list
# of those that it asked for or must not use (ReqNodeList, ExcNodeList).
_LIST: Final = re.compile(
    r"(?<![A-Za-z])(?:NodeList|SLURM_(?:JOB_|STEP_)?NODELIST|LSB_HOSTS|LSB_MCPU_HOSTS|exec_host|exec_vnode"
    r"|Nodes? ?[Ll]ist)"
    r"[\"']?(?: ?[=:] ?| is )[\"']?(?P<nodes>[A-Za-z][^\s\"';|]{1,4000}(?: [a-z][\w.-]{0,60}\d){0,256})"
)
_LIST_WORDS: Final = ("NodeList", "NODELIST", "LSB_", "exec_", "ode list", "odelist")
_NAME: Final = re.compile(r"(?<![\w.*:-])(?P<name>[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){0,6})")
# How the environment, records and launchers state how many nodes a job has.
_COUNT: Final = re.compile(
    r"(?<![A-Za-z])(?:SLURM_(?:JOB_NUM_NODES|NNODES|STEP_NUM_NODES)|NNODES|NumNodes|num_nodes|--nnodes|nnodes|n_nodes)"
    r"[\"']?(?:[=:]| ?= ?|: | )[\"']?(?P<count>[1-9]\d{0,4})\b(?![:.])"
)
_COUNT_WORDS: Final = ("NNODES", "NUM_NODES", "NumNodes", "num_nodes", "nnodes", "n_nodes")


@dataclass(frozen=True, slots=True)
class OwnNodes:
    """The nodes of a job.

    Attributes:
        names: short names of the nodes that are known.
        more: whether it ran on more nodes than those.
    """

    names: frozenset[str]
    more: bool


def own_nodes(job: JobFacts, texts: Iterable[str]) -> OwnNodes:
    """The nodes of a job: those that its record has, and those that its scheduler lists with one of them.

    Args:
        job: the facts of the scheduler.
        texts: its logs, the first 40,000 characters of which are read.
    """
    known = frozenset(map(short_name, job.nodes))
    fronts = [*(one for one in (job.message, job.reason) if one), *(text[:FRONT_OF_LOG] for text in texts)]
    lists = [_names(hit["nodes"]) for text in fronts if _has_one(_LIST_WORDS, text) for hit in _LIST.finditer(text)]
    names = known.union(*(one for one in lists if not one.isdisjoint(known)))
    counts = [int(hit["count"]) for text in fronts if _has_one(_COUNT_WORDS, text) for hit in _COUNT.finditer(text)]
    more = max(counts, default=0) > len(names) or (job.gpus or 0) > MOST_GPUS * len(names)
    return OwnNodes(names, more and bool(names))


def _has_one(words: Iterable[str], text: str) -> bool:
    return any(word in text for word in words)


def _names(text: str) -> frozenset[str]:
    return frozenset(short_name(hit["name"]) for hit in _NAME.finditer(written_out(text)))
