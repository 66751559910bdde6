"""Guesses from the name of a log which process wrote it: rank, node and stream.

Sources: torchrun `--log-dir` (attempt_0/3/stderr.log), mpirun `--output-filename` (rank.3/stderr), horovodrun
(rank.03/stderr), sbatch file name patterns (slurm-%j.%t.err, %j-%N-%t.out), Kubeflow's pod names (job-worker-2).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from classifiers.extraction.line_prefixes import MOST_RANKS, pod_rank

_SUFFIX: Final = re.compile(
    r"(?i)(?:\.(?:log|err|out|txt|stderr|stdout|trace|gz|bz2|xz|lzma|zst|zstd|previous|current))+$"
)
_TORCHRUN: Final = re.compile(
    r"(?:^|/)attempt_(?P<attempt>\d{1,4})/(?P<rank>\d{1,5})/(?:(?:std(?:out|err))(?:\.log)?\b|error\.json$)"
)
_RANK: Final = re.compile(
    r"(?i)(?:^|[/_.@+-])(?:(?:global|world|local)[_-]?)?(?:rank|task|proc(?:ess)?|trainer|replica)[_.=-]{0,2}"
    r"0{0,4}(?P<rank>\d{1,5})(?![\d:])"
)
_POD: Final = re.compile(
    r"(?:^|[-_.])(?P<pod>(?:worker|master|chief|launcher|ps)[-_]?\d{1,4})(?:-[a-z0-9]{5})?(?=$|[_./-])"
)
_WORKER: Final = re.compile(r"(?P<role>[a-z]+)[-_]?(?P<number>\d+)$")
# Words before the name of a node that say what a file is, and are no part of the name.
_NODE: Final = re.compile(
    r"(?i)(?:^|[/_.@+-])(?P<node>ip(?:-\d{1,3}){4}|(?:(?!(?:dmesg|kern|kernel|syslog|messages|journal|log|smi|sacct|ras"
    r"|run|job|train|err|out|stderr|stdout|console)-)[a-z][a-z0-9]{0,11}-)?(?:node|gpu|host|dgx|hgx|cn|nid|compute|server)"
    r"[-_]?\d{1,6})(?=$|[/_.@+-])"
)
_STREAM: Final = re.compile(r"(?i)(?:^|[/_.-])(?P<stream>stderr|stdout|err|out)(?=$|[/_.-])")
_SLURM: Final = re.compile(r"(?:^|/)slurm[-_](?P<job>\d{1,10})\b")
_ROTATED: Final = re.compile(r"\.(?:log|err|out|txt)\.\d{1,3}(?:\.\w+)?$")
_RANDOM_END: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?=\.\w{1,9}$|$)")  # as Kubernetes names pods
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a log, as far as its name shows; `attempt` is torchrun's, `job` the number of a Slurm job."""

    rank: int | None = None
    node: str | None = None
    stream: str = "stderr"
    attempt: int | None = None
    job: str | None = None


def writers(names: Sequence[str]) -> list[Writer]:
    """Return the writer of each log. What differs between names counts as a rank where no name says so itself."""
    has_master = any(found["pod"].startswith(("master", "chief")) for name in names for found in _POD.finditer(name))
    found = [_writer(name, has_master=has_master) for name in names]
    if all(one.rank is None for one in found):
        ranks = _numbers_that_differ(names)
        found = [replace(one, rank=ranks.get(name)) for one, name in zip(found, names, strict=True)]
    return found


def _writer(name: str, *, has_master: bool) -> Writer:
    bare = _SUFFIX.sub("", name)
    stream = [hit["stream"].lower() for hit in _STREAM.finditer(name)]
    slurm = _SLURM.search(name)
    torchrun = _TORCHRUN.search(name)
    node = _NODE.search(bare)
    return Writer(
        rank=int(torchrun["rank"]) if torchrun is not None else _rank(bare, has_master=has_master),
        node=None if node is None else node["node"],
        stream="stdout" if stream and stream[-1] in {"stdout", "out"} else "stderr",
        attempt=int(torchrun["attempt"]) if torchrun is not None else None,
        job=None if slurm is None else slurm["job"],
    )


def _rank(bare: str, *, has_master: bool) -> int | None:
    hits = [int(hit["rank"]) for hit in _RANK.finditer(bare)]
    if hits:
        return hits[-1] if hits[-1] < MOST_RANKS else None
    pods = [hit["pod"] for hit in _POD.finditer(bare)]
    if not pods:
        return None
    parts = _WORKER.fullmatch(pods[-1])
    return None if parts is None else pod_rank(f"{parts['role']}-{parts['number']}", has_master=has_master)


def _numbers_that_differ(names: Sequence[str]) -> dict[str, int]:
    """Return the ranks of names that are equal but for numbers, one of which counts from 0."""
    plain = [name for name in names if not _ROTATED.search(name)]
    groups: dict[str, list[str]] = {}
    for name in plain:
        groups.setdefault(_NUMBER.sub("#", _RANDOM_END.sub("", name)), []).append(name)
    ranks: dict[str, int] = {}
    for group in groups.values():
        columns = list(zip(*(map(int, _NUMBER.findall(_RANDOM_END.sub("", name))) for name in group), strict=True))
        counting = [column for column in columns if sorted(column) == list(range(len(group)))]
        if len(counting) == 1 and len(group) > 1:
            ranks |= dict(zip(group, counting[0], strict=True))
    return ranks
