"""What the text of a node event names: device, port, file server, process, job; and whether it reports a recovery."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from classifiers.patterns.loose_patterns import without_upper_bounds
from classifiers.relevance.event_words import (
    CORRECTED,
    DISCLAIMED,
    MANAGEMENT,
    OVER,
    RECOVERY,
    REDUNDANT,
    REPAIR,
    STANDS,
    UNCORRECTED,
)

# An address, or a name of its own: with a digit, slash, dot, dash or underscore in it, or in capitals; no time, no
# version.
_SPECIFIC: Final = re.compile(
    r"(?<![\w/.-])(?=[\w/.-]{0,60}[\d/._])[A-Za-z/][\w/.-]{2,60}[\w]|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{2,5})?\b"
)
# What a change makes of something: the new version or value, which has a digit.
_CHANGED_TO: Final = re.compile(r"(?:\bto|->|→)\s{0,2}([\w.+-]{0,30}\d[\w.+-]{0,30})(?<![.,])")
_RANGE: Final = 600  # characters of an event that are read (judgement)

_GPU: Final = re.compile(r"\bGPU[ :#]{0,2}(\d{1,2})\b|\bgpu=\"?(\d{1,2})\b|\bnvidia(\d{1,2})\b|\bcuda:(\d{1,2})\b")
# With a domain or a function: "22:41" alone is a time.
_PCI: Final = re.compile(
    r"\b[0-9a-f]{4,8}:([0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7]|:00)?\b|\b([0-9a-f]{2}:[0-9a-f]{2})\.[0-7]\b"
    r"|\bpci:([0-9a-f]{2}:[0-9a-f]{2})\b(?!:[0-9a-f])"
)
_UUID: Final = re.compile(r"\b((?:gpu|mig)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
_PORT: Final = re.compile(
    r"\b(mlx5_(?:bond_)?\d{1,2}|(?:eno|enp|ens|eth|ib|ibp|ibs|bond|hsn|rdma|roce|team|wlan|usb)[0-9]\w{0,14})\b"
)
_SERVER: Final = re.compile(
    r"(?i)\bserver (\S{2,80}?)(?=[\s,:]|$)|\\\\([\w.-]{1,60})|\b([\w.-]{1,40}-(?:OST|MDT)[0-9a-f]{4})"
    r"|\b([\w.-]{1,40})-(?:OST|MDT)\b|\bfile ?system (\w{3,30})\b|\b([a-z][\w-]{1,40}(?:\.[\w-]{1,40}){1,5}):/"
)
_FILESYSTEM: Final = re.compile(r"(?i)\b([\w.]{1,40})-(?:OST|MDT)(?:[0-9a-f]{4})?\b|\bfile ?system (\w{3,30})\b")
_MOUNT: Final = re.compile(r"(?<![\w/.])(/(?:[\w.-]+/?){1,8})")
_DISK: Final = re.compile(r"\b(nvme\d{1,2}(?:n\d)?|sd[a-z]{1,2}\d{0,2}|dm-\d{1,3}|md\d{1,3})\b")
_IMAGE: Final = re.compile(r"\bimage \"?((?=[\w.-]{1,80}[/:])[\w./:@-]{3,200}[\w])")
_PID: Final = re.compile(
    r"\bpid[= :]{1,2}'?(\d{2,8})\b|\b(?:[Kk]illed )?[Pp]rocess (\d{2,8})\b|\b[a-z][\w.-]{1,30}\[(\d{2,8})\](?=:| trap)"
    r"|\bLustreError: (\d{2,8}):|\bSIG[A-Z]{2,5} to [\w./-]{1,40}:(\d{2,8})\b"
)
_PIDS: Final = re.compile(
    r"(?i)\b(?:pids|processes|tasks)\b[^\n:\d]{0,40}(?:uid \d{1,8})?: ?((?:\d{2,8}[ ,]{1,2}){1,63}\d{2,8})\b"
)
_PROCESS_NAME: Final = re.compile(
    r"\bname=([\w.-]{2,40})|\bprocess \d{2,8} \(([^)]{1,40})\)|\btask=([^,]{1,40}),"
    r"|^([\w.-]{2,30}) invoked oom-killer|\btask ([\w.-]{2,30}):\d+ blocked"
    r"|\bstuck for \d+s! \[([\w./-]{1,40}?):\d+\]|\b([\w.-]{2,30})\[\d{2,8}\]:? (?:segfault|trap )"
)
_JOB: Final = re.compile(
    r"(?i)\b(?:job|step)(?:id)?[ =_#]{1,2}(\d{2,12})\b|/job_(\d{2,12})\b|\[(\d{4,12})\.(?:batch|extern"
    r"|interactive|\d{1,3})\]|\bSTEP (\d{2,12})\.|\*\*\* JOB (\d{2,12})\b"
)
_POD: Final = re.compile(
    r"(?i)\b(?:pods?|sandbox for|job)[=: ]{1,2}\"?([a-z0-9][\w.-]{0,80}/[a-z0-9][\w.-]{0,80})"
    r"|\bpod/([a-z0-9][\w.-]{0,80}(?:/[a-z0-9][\w.-]{0,80})?)"
)
# Names of kinds of devices in Kubernetes, which are not the name of one thing.
_RESOURCE: Final = re.compile(
    r"(?:requests\.|limits\.)?(?:nvidia|amd|intel|habana|aws\.amazon|google)\.(?:com|ai)/[\w.-]+"
)
_OWN_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,40}-[a-z0-9-]{1,60}")
# Not the scope of slurmstepd, which holds the groups of jobs. A session is that of a login.
_SLICE: Final = re.compile(
    r"\bsession-\w{1,12}\.scope\b|/((?:system|user|machine)\.slice)(?:[^\w/]|$|/(?:$|[^s]|s[^l]|sl[^u]|slu[^r]|slur[^m]|slurm[^s]))"
)
# Whose quota it is, and not of what.
_OWNER: Final = re.compile(r"(?i)\bquotas? (?:of|for) (?:user |group |account |team )?([a-z][\w.-]{1,30})")
# fmt: off
_NO_OWNERS: Final = frozenset({
    "the", "all", "each", "every", "any", "volume", "file", "project", "projects", "group", "team", "tree", "qtree",
    "directory", "user", "users", "scratch", "home",
})
# fmt: on
_NODE: Final = re.compile(r"(?i)\bnodes? \"?([a-z][\w.-]{1,60})")

# What processes of training jobs are called.
TRAINING_PROGRAMS: Final = (
    "python", "pt_main", "pt_data", "pt_auto", "ray::", "torchrun", "train", "mpirun", "orted", "ray", "java",
)  # fmt: skip
# Programs of notebooks and of the node itself, which no batch job starts.
_OTHER_PROGRAMS: Final = (
    "jupyter", "ipykernel", "xorg", "gnome", "node_exporter", "dcgm", "prometheus", "telegraf", "nvidia-smi",
    "cron", "sshd",
)  # fmt: skip
# Those of them that ask every device of a node, whoever uses it.
_MONITORS: Final = ("node_exporter", "dcgm", "nv-hostengine", "prometheus", "telegraf", "nvidia-smi")


class EventObjects:
    """What an event's text names. Each attribute is read when it is asked for first: most events need few of them.

    Attributes:
        gpus: indexes of GPUs.
        names: devices, ports, servers, disks and images of containers, in lower case.
        mounts: paths.
        filesystems: names of file systems, without their servers, in lower case.
        pids: process ids.
        programs: names of processes, in lower case.
        jobs: ids of jobs of a scheduler.
        pods: pods as namespace/name.
        nodes: nodes, without their domain, in lower case.
        owners: names of users or groups whose quota it is, in lower case.
        specific_names: words that name one thing, such as a module, a path, a host or a resource, in lower case.
        new_versions: versions or values of two digits and more that a change leads to.
        is_corrected: whether the event itself says that nothing was lost.
        is_redundant: whether it says that the node goes on with other parts of the same kind.
        is_disclaimed: whether it says that nobody uses the object or that nothing was lost by it.
        is_recovery: whether it reports that something works again.
        is_over: whether it does so in words that report nothing else.
        is_repair: whether it reports that the node was repaired or is in service again.
        of_node: whether it is of a slice of the node's own services.
        of_management: whether it is of a management port or controller.
    """

    gpus: frozenset[int]
    names: frozenset[str]
    mounts: frozenset[str]
    filesystems: frozenset[str]
    pids: frozenset[str]
    programs: frozenset[str]
    jobs: frozenset[str]
    pods: frozenset[str]
    nodes: frozenset[str]
    owners: frozenset[str]
    specific_names: frozenset[str]
    new_versions: frozenset[str]
    is_corrected: bool
    is_redundant: bool
    is_disclaimed: bool
    is_recovery: bool
    is_over: bool
    is_repair: bool
    of_node: bool
    of_management: bool

    def __init__(self, text: str) -> None:
        self._text = text
        self._low = self._text.lower()
        self._may = _matching(self._text) | _OF_OBJECTS.matching(self._text)
        self._is_ascii = self._text.isascii()
        if not self._is_ascii:  # letters of other alphabets may match in lower case only
            self._may |= _OF_ALL.matching(self._low) | _OF_OBJECTS.matching(self._low)

    def __getattr__(self, name: str) -> Any:
        read = _READERS.get(name)
        if read is None:
            raise AttributeError(name)
        value = read(self)
        setattr(self, name, value)
        return value

    def found(self, pattern: re.Pattern[str], *, low: bool = False) -> list[str]:
        """The groups of all matches of a pattern."""
        if pattern.pattern not in self._may:
            return []
        where = self._low if low else self._text
        return [group for hit in pattern.finditer(where) for group in hit.groups() if group is not None]

    def words(self, pattern: re.Pattern[str]) -> list[str]:
        """All matches of a pattern that is not worth a look in advance."""
        return pattern.findall(self._text)

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern matches."""
        if pattern.pattern not in self._may:
            return False
        return (self._is_ascii and pattern.pattern in EXACT) or pattern.search(self._text) is not None

    @property
    def stands(self) -> bool:
        """Whether the words that would disclaim it report its failure."""
        return self.has(STANDS) and DISCLAIMED.search(STANDS.sub("", self._text)) is None

    def shares(self, other: "EventObjects") -> bool:
        """Whether both name the same device, port, server, disk or process."""
        return (
            not self.gpus.isdisjoint(other.gpus)
            or not self.names.isdisjoint(other.names)
            or not self.pids.isdisjoint(other.pids)
        )

    @property
    def of_other_program(self) -> bool:
        """Whether it names processes none of which a training job starts."""
        return bool(self.programs) and all(one.startswith(_OTHER_PROGRAMS) for one in self.programs)

    @property
    def of_monitor(self) -> bool:
        """Whether the only processes that it names are monitors: they meet the faults of all devices."""
        return bool(self.programs) and all(one.startswith(_MONITORS) for one in self.programs)


def _with_own(name: str) -> tuple[str, ...]:
    """A name, and where it is that of an object in a namespace ("ml/fit-0"), the object's, which logs give alone."""
    if _RESOURCE.fullmatch(name) is not None:
        return ()
    space, _, own = name.partition("/")
    return (name, own) if space and _OWN_NAME.fullmatch(own) is not None else (name,)


_READERS: Final[Mapping[str, Callable[[EventObjects], Any]]] = {
    "gpus": lambda one: frozenset(map(int, one.found(_GPU))),
    "names": lambda one: frozenset(
        name for pattern in (_PCI, _UUID, _PORT, _SERVER, _DISK, _IMAGE) for name in one.found(pattern, low=True)
    ),
    "mounts": lambda one: frozenset(path.rstrip("/.") for path in one.found(_MOUNT)),
    "filesystems": lambda one: frozenset(one.found(_FILESYSTEM, low=True)),
    "pids": lambda one: frozenset(
        [*one.found(_PID), *(pid for pids in one.found(_PIDS) for pid in pids.replace(",", " ").split())]
    ),
    "programs": lambda one: frozenset(one.found(_PROCESS_NAME, low=True)),
    "jobs": lambda one: frozenset(one.found(_JOB, low=True)),
    "pods": lambda one: frozenset(one.found(_POD, low=True)),
    "nodes": lambda one: frozenset(name.split(".", 1)[0] for name in one.found(_NODE, low=True)),
    "owners": lambda one: frozenset(one.found(_OWNER, low=True)) - _NO_OWNERS,
    "specific_names": lambda one: frozenset(part for name in one.words(_SPECIFIC) for part in _with_own(name.lower())),
    "new_versions": lambda one: frozenset(name for name in one.words(_CHANGED_TO) if sum(map(str.isdigit, name)) > 1),
    "is_corrected": lambda one: one.has(CORRECTED) and not one.has(UNCORRECTED) and not one.has(STANDS),
    "is_redundant": lambda one: one.has(REDUNDANT) and not one.has(UNCORRECTED),
    "is_disclaimed": lambda one: one.has(DISCLAIMED) and not one.stands,
    "is_recovery": lambda one: one.has(RECOVERY) and not one.has(STANDS),
    "is_over": lambda one: one.has(OVER),
    "is_repair": lambda one: one.has(REPAIR),
    "of_node": lambda one: one.has(_SLICE),
    "of_management": lambda one: one.has(MANAGEMENT),
}


class _Prefilter:
    """Some patterns in one pass of RE2, which has no look-around: what it finds is tried with the pattern itself.

    Case is ignored, since some patterns are tried on the text in lower case. On ASCII text, `exact` patterns need no
    second try: those that ignore case themselves, without look-around, spaces and ends, which the engines read
    differently, and without large upper bounds: all are searched without these, which is faster.

    Args:
        match_only: the patterns of which it is only asked whether they match.
        read: those whose matches are read.
    """

    def __init__(self, match_only: Sequence[re.Pattern[str]], read: Sequence[re.Pattern[str]]) -> None:
        self._patterns = [pattern.pattern for pattern in (*match_only, *read)]
        self._set = re2.Set.SearchSet()
        self.exact: frozenset[str] = frozenset(
            one
            for one in self._patterns[: len(match_only)]
            if one.startswith("(?i)") and _READ_DIFFERENTLY.search(one) is None and without_upper_bounds(one) == one
        )
        for pattern in self._patterns:
            tried = pattern if pattern in self.exact else without_upper_bounds(_LOOK_AROUND.sub("", pattern))
            self._set.Add(f"(?i:{tried})")
        self._set.Compile()

    def matching(self, text: str) -> frozenset[str]:
        """The patterns that may match a text or the text in lower case."""
        found = self._set.Match(text.encode())
        return frozenset([self._patterns[index] for index in found]) if found else _NONE


_NONE: Final[frozenset[str]] = frozenset()
_READ_DIFFERENTLY: Final = re.compile(r"\(\?<?[=!]|\\[sSzZ]|\$")
_LOOK_AROUND: Final = re.compile(r"\(\?<?[=!](?:[^()\\]|\\.)*\)")
# What is asked of every event by `may_concern_others` and `reports_recovery`, and what of the few others read further.
_OF_ALL: Final = _Prefilter(match_only=(CORRECTED, RECOVERY, REPAIR, DISCLAIMED), read=(_JOB,))
_OF_OBJECTS: Final = _Prefilter(
    match_only=(_SLICE, UNCORRECTED, REDUNDANT, STANDS, MANAGEMENT, OVER),
    read=(
        _GPU, _PCI, _UUID, _PORT, _SERVER, _FILESYSTEM, _MOUNT, _DISK, _IMAGE, _PID, _PIDS, _PROCESS_NAME, _POD, _NODE,
        _OWNER,
    ),
)  # fmt: skip
EXACT: Final = _OF_ALL.exact | _OF_OBJECTS.exact  # expressions for which one pass is enough on ASCII text
_OF_RECOVERIES: Final = frozenset((RECOVERY.pattern, REPAIR.pattern))


@lru_cache(maxsize=8_192)
def _matching(text: str) -> frozenset[str]:
    return _OF_ALL.matching(text)


def read_objects(text: str) -> EventObjects:
    """What the text of an event names."""
    return _read_objects(text[:_RANGE])


@lru_cache(maxsize=4_096)
def _read_objects(text: str) -> EventObjects:
    return EventObjects(text)


def may_concern_others(text: str) -> bool:
    """Whether the text of an event may report a recovery or a harmless state, or name a job; few do."""
    return bool(_matching(text[:_RANGE]))


def reports_recovery(text: str) -> bool:
    """Whether the text of an event reports that something works again or was repaired."""
    if text.isascii():  # both expressions are exact
        return not _OF_RECOVERIES.isdisjoint(_matching(text[:_RANGE]))
    objects = read_objects(text)
    return may_concern_others(text) and bool(objects.is_recovery or objects.is_repair)
