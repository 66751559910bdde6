"""What stands at the head of a log line: time, rank, host, log level. Launchers and frameworks each have their own.

Sources: PyTorch (`[rank3]:`, `[default3]:`, glog heads), Open MPI `--tag-output` (`[1,3]<stderr>:`), Slurm
`srun --label` (`3: `), Ray (`(pid=4711, ip=10.0.0.1)`), NCCL (`host:pid:tid [gpu] NCCL WARN`), Lightning (`[rank: 2]`),
syslog, ISO 8601.
"""

import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ISO = re.compile(
    r"(?P<y>20\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>[.,]\d{1,9})?"
)
_GLOG = re.compile(r"\b[EWIFD](?P<mo>[01]\d)(?P<d>[0-3]\d)\s+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>\.\d{1,9})?")
_EPOCH = re.compile(r"(?:\"(?:ts|time|timestamp)\": ?|\b00:00:)(?P<s>1[5-9]\d{8})(?P<f>\.\d{1,9})?")
_SYSLOG = re.compile(
    r"\b(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+(?P<d>\d{1,2})\s+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
)
_MONTHS = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_DAYS_BEFORE = (0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)
_HEAD_LOOK = 120

_MPI_TAG = re.compile(
    r"\[(?:\d{1,12},|[\w.-]{1,80}@\d{1,6},)(?P<rank>\d{1,6})\](?:<(?:stdout|stderr|stddiag)>)?:? ?"
    r"|\[(?P<rank2>\d{1,6})\]<(?:stdout|stderr)>: ?"
)
_STAMPED_TAG = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[\d{1,6}[\],])")
_RANK_TAG = re.compile(r"\[(?:rank|Rank|trainer|worker|default)[: ._-]{0,2}(?P<rank>\d{1,6})(?:\|\d+)?\][: ] ?")
_LOCAL_TAG = re.compile(r"\[default(?P<rank>\d{1,4})\]:")
_SRUN_TAG = re.compile(r"\s{0,5}(?P<rank>\d{1,5}): ")
_RAY_TAG = re.compile(r"\((?:[\w.<>]+ )?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.]+))?\) ?")
_POD_TAG = re.compile(
    r"(?:\[?(?:pod/)?[\w.-]*(?:worker|master|ps|launcher)-(?P<rank>\d{1,5})[\w/.-]*\]?)(?: ?\| ?|: | )"
)
_INNER_RANK = re.compile(
    r"\[(?:PG (?:ID )?\d+[^\]]{0,40} )?[Rr]ank:? (?P<a>\d{1,6})[\],]|\brank[ =:]{1,3}(?P<b>\d{1,6})\b(?! of)"
    r"|\[rank(?P<c>\d{1,6})\]|\"rank\": {0,2}(?P<d>\d{1,6})\b"
)
_NCCL_HEAD = re.compile(r"(?P<host>[\w.-]+):(?P<pid>\d+):(?P<tid>\d+) \[(?P<gpu>\d+)\] ")
_LEVEL = re.compile(r"(?i)\b(?:warn(?:ing)?|info|debug|notice)\b|^wandb: (?!ERROR)")
_MILD_GLOG = re.compile(r"(?:^|[\s:\]])\[?[WID][01]\d[0-3]\d \d\d:\d\d:\d\d")
_TAIL_OF_HEAD = re.compile(
    r"(?:[\s\[(]*(?:20\d\d[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?[:,]?\s*"
    r"|\s*[EWIFD]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+\d+ |\[\d+\.\d+\]\s*)+"
)


@dataclass(frozen=True, slots=True)
class Head:
    """What a line's head tells, None if not; `local`: a rank within its node; `body`: where words begin."""

    rank: int | None = None
    local: bool = False
    pid: str | None = None
    host: str | None = None
    gpu: int | None = None
    body: int = 0


def plain(text: str) -> str:
    """The text without terminal colours; the same object where there are none."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _seconds(hit: re.Match[str], month: int) -> float:
    days = _DAYS_BEFORE[month] if 1 <= month <= len(_DAYS_BEFORE) - 1 else 0
    part = hit.groupdict().get("f")
    whole = ((days + int(hit["d"])) * 24 + int(hit["h"])) * 3600 + int(hit["mi"]) * 60 + int(hit["s"])
    return whole + (float("0." + part[1:]) if part else 0.0)


def time_of(line: str) -> float | None:
    """Seconds into the year by the first time stamp near the line's start, None without one; zones are left aside."""
    head = line[:_HEAD_LOOK]
    if head.count(":") < 2 and '"t' not in head:  # noqa: PLR2004 - a time of day has two
        return None
    hit = _ISO.search(head)
    if hit is not None:
        return _seconds(hit, int(hit["mo"]))
    hit = _GLOG.search(head)
    if hit is not None:
        return _seconds(hit, int(hit["mo"]))
    if "1" in head:
        hit = _EPOCH.search(head)
        if hit is not None:
            moment = time.gmtime(int(hit["s"]))
            return (
                (_DAYS_BEFORE[moment.tm_mon] + moment.tm_mday) * 86_400
                + int(hit["s"]) % 86_400
                + float("0" + (hit["f"] or ""))
            )
    hit = _SYSLOG.search(head)
    return None if hit is None else _seconds(hit, _MONTHS[hit["mon"]])


_PLAIN: Final = tuple(Head(body=body) for body in range(200))


@lru_cache(maxsize=1024)
def head_of(line: str, *, labelled: bool = False) -> Head:  # noqa: C901, PLR0912 - one branch a launcher
    """Rank, process, host and device that the head of a line names, and where its words begin.

    `labelled`: the stream was written by `srun --label`, so that a number and a colon is a rank.
    """
    rank: int | None = None
    local = False
    pid = host = None
    gpu = None
    stamped = _STAMPED_TAG.match(line) if line[3:4] == " " else None
    at = stamped.end() if stamped is not None else 0
    for _ in range(4):
        skipped = _TAIL_OF_HEAD.match(line, at)
        if skipped is not None and skipped.end() > at:
            at = skipped.end()
            continue
        char = line[at : at + 1]
        hit: re.Match[str] | None = None
        if char == "[":
            hit = _MPI_TAG.match(line, at) or _RANK_TAG.match(line, at)
            if hit is not None:
                local = _LOCAL_TAG.match(line, at) is not None
        elif char == "(":
            hit = _RAY_TAG.match(line, at)
            if hit is not None:
                pid, host = hit["pid"], hit["ip"]
                at = hit.end()
                continue
        elif labelled and at == 0:
            hit = _SRUN_TAG.match(line)
        if hit is None:
            break
        rank = int(hit["rank"] if hit["rank"] is not None else hit["rank2"])
        at = hit.end()
    nccl = _NCCL_HEAD.match(line, at)
    if nccl is not None:
        host, pid, gpu, at = nccl["host"], nccl["pid"], int(nccl["gpu"]), nccl.end()
    elif rank is None:
        pod = _POD_TAG.match(line, at)
        if pod is not None:
            rank, at = int(pod["rank"]), pod.end()
            tag = _RANK_TAG.match(line, at) if line[at : at + 1] == "[" else None
            if tag is not None:  # a pod's number is no rank where the line gives one itself
                rank, at = int(tag["rank"]), tag.end()
    if rank is None and pid is None and host is None and at < len(_PLAIN):
        return _PLAIN[at]  # most lines: nothing is told
    return Head(rank=rank, local=local, pid=pid, host=host, gpu=gpu, body=at)


def inner_rank(line: str) -> int | None:
    """The rank that a message names as its own (`[Rank 3]`, `[PG ID 0 ... Rank 3]`, `rank=3`), None if none."""
    hit = _INNER_RANK.search(line, 0, 400)
    if hit is None:
        return None
    return int(hit["a"] or hit["b"] or hit["c"] or hit["d"])


def is_labelled(text: str) -> bool:
    """Whether most of the first lines begin with a number and a colon, as `srun --label` writes them."""
    if not _SRUN_TAG.match(text):
        front = text[:2_000]
        if "\n0: " not in front and "\n1: " not in front:
            return False
    lines = text[:4000].split("\n")[:40]
    if len(lines) > 1:
        lines.pop()
    full = [line for line in lines if line.strip()]
    return bool(full) and sum(_SRUN_TAG.match(line) is not None for line in full) > 0.6 * len(full)


def is_mild(line: str) -> bool:
    """Whether the line calls itself information or a warning and names no error."""
    return _LEVEL.search(line, 0, 160) is not None or _MILD_GLOG.search(line, 0, 120) is not None
