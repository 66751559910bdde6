"""The names of a job: what its logs, the scheduler's message and the events at its start call it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Final

from classifiers.contracts import JobFacts, NodeEvent
from classifiers.node_names import short_name
from classifiers.relevance.event_objects import read_objects

# What a text in lower case calls a job: "pytorchjob ml/bert", "job.batch/bert", "job_name=bert", "job bert-7",
# "job bert: 2 of 4 ready".
_JOB_NAME: Final = re.compile(
    r"job(?:s?(?:\.[a-z]{1,10}){0,2}(?:/|[ =:]{1,2}\"?[a-z0-9-]{1,60}/| [\"'])([a-z0-9][a-z0-9-]{1,60})"
    r"|[ _-]?name[\"']?[ =:]{1,3}[\"']?([a-z0-9][a-z0-9-]{1,60})"
    r"|s?[ =]\"?((?=[a-z-]{0,60}\d)[a-z0-9]{1,40}-[a-z0-9-]{1,60})"
    r"| ([a-z0-9][a-z0-9-]{2,60}): )"
)
# What operators of training jobs call their objects, and the name behind it: "RayCluster fraud-gnn", "jobset/pre-8b".
_OBJECT: Final = re.compile(
    r"\b(?:(?:pytorch|tf|mpi|xgboost|paddle|jax|ray|train)job|raycluster|jobset|statefulset|workflow|appwrapper|podgroup)"
    r"(?:\.[a-z.]{1,40})?[ /=:]{1,2}[\"']?(?:[a-z0-9-]{1,60}/)?((?=[a-z0-9]{0,60}-)[a-z0-9-]{3,60})"
)
# One of these is part of every match of the expression above it, and is found faster.
_OBJECT_PARTS: Final = ("job", "raycluster", "statefulset", "workflow", "appwrapper", "podgroup")
# The number that a batch system gave a job, in its daemons' lines, in the environment of a process, in a report.
_JOB_NUMBER: Final = re.compile(
    r"(?i)\b(?:slurm_|pbs_|lsb_)?job(?:[ _]?id)?[ =:#_\"']{1,4}(\d{3,12})\b|\bSTEP (\d{3,12})\.\w|\bStepId=(\d{3,12})\b"
)
_STARTED: Final = re.compile(r"\b(?:Started|Created|Pulled) pod/(?:[\w.-]{1,60}/)?(?P<pod>[a-z0-9][a-z0-9.-]{2,80})")
_BEGAN: Final = re.compile(r"\bStarted\b[^\n]{0,60}?\bpod[/ ](?:[\w.-]{1,60}/)?(?P<pod>[a-z0-9][a-z0-9.-]{2,80})")
# What a process calls its own machine: the head of NCCL's lines, torchelastic's report. On Kubernetes it is the pod.
_OWN_HOST: Final = re.compile(
    r"(?m)(?:^[ \t]*host[ \t]{1,9}: |(?=[^\n]{1,200}:\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL )(?:^|(?<=[ \]|])))"
    r"(?P<name>[a-z0-9][a-z0-9-]{1,80}?)-(?:worker|master|launcher|head|chief|leader|ps|trainer|replica|node)s?-\d{1,4}\b"
)
_NOT_PLACED: Final = re.compile(r"(?i)schedul(?:ing|able)\b|scale-up|insufficient ")  # a pod that waits for a node
_MOST_HOSTS: Final = 64  # of a log (judgement: all are of one job)
# What Kubernetes and the operators of training jobs add to the name of a job: a role, an index, random letters.
_ADDED_TO_NAME: Final = re.compile(
    r"workers?|master|launcher|head|chief|leader|ps|trainer|replicas?|node|server|driver|executor|evaluator|group|job"
    r"|gpu|cpu|\d{1,5}|[bcdfghjklmnpqrstvwxz2-9]{5,10}|(?=[a-z]*\d)[a-z0-9]{4,10}"
)
# A pod that the text of an event names, and how short its name may be (judgement: shorter ones are words of any log).
# That it is a whole word is asked behind it: an expression that begins with letters is searched faster.
_NAMED_POD: Final = re.compile(r"pod(?<!\wpod)[/ ](?:[\w.-]{1,60}/)?(?P<name>[a-z0-9][a-z0-9-]{2,80})")
_SHORTEST_NAME: Final = 4  # characters
_BEFORE_START_S: Final = 120  # judgement: an image is pulled before a job counts as started
_AFTER_START_S: Final = 60  # judgement


def own_names(job: JobFacts, texts: Iterable[str], events: Sequence[NodeEvent]) -> frozenset[str]:
    """The names of a job.

    Args:
        job: the facts of the scheduler.
        texts: its logs.
        events: the events of nodes; pods that started on its nodes when it did are its own if all have one name.
    """
    written = [*texts, *(one for one in (job.message, job.reason) if one)]
    names = {name for text in written for name in _names_in(text)}
    for text in written:
        if " NCCL " in text or "host  " in text:
            names.update(found["name"] for found in islice(_OWN_HOST.finditer(text), _MOST_HOSTS))
    if job.name:
        names.add(job.name.lower())
    started = _started_with(job, events)
    return frozenset(names | started if len(started) == 1 else names)


def own_numbers(job: JobFacts, texts: Iterable[str]) -> frozenset[str]:
    """The numbers that the logs and the scheduler's message call a job, such as STEP 9120044.0."""
    written = [*texts, *(one for one in (job.message, job.reason) if one)]
    return frozenset(hit[hit.lastindex or 0] for text in written for hit in _JOB_NUMBER.finditer(text))


def names_of_pod(pod: str) -> Iterator[str]:
    """What the job of a pod may be called: the pod's name, then without its role, its number, its generated end."""
    parts = pod.split("-")
    yield pod
    while len(parts) > 1 and _ADDED_TO_NAME.fullmatch(parts.pop()) is not None:
        yield "-".join(parts)


def are_pods_of(
    pods: Iterable[str],
    job_id: str | None,
    mentions: Callable[[str], bool],
    job_names: Callable[[], AbstractSet[str]],
) -> bool:
    """Whether one of some pods, as namespace/name, is of a job.

    Args:
        pods: the pods.
        job_id: the id of the job.
        mentions: whether a name is in the logs of the job.
        job_names: finds the names of the job.
    """
    name = (job_id or "").rsplit("/", 1)[-1]
    return any(
        (name and name in pod)
        or any(map(mentions, _with_first_of_role(pod)))
        or not job_names().isdisjoint(names_of_pod(pod))
        for pod in (one.rsplit("/", 1)[-1] for one in pods)
    )


def is_of_foreign_pod(text: str, own_texts: Iterable[str]) -> bool:
    """Whether an event names pods, and no text of the job names one of them or what their job may be called.

    What such an event says of its own pod explains no other event of the node.

    Args:
        text: the text of the event.
        own_texts: the logs of the job, the scheduler's message and the name of the job.
    """
    if "pod" not in text:
        return False
    names = _names_of_pods(text)
    if not names:
        return False
    for own in own_texts:  # this is asked of many events
        for name in names:
            if name in own:
                return False
    return True


@lru_cache(maxsize=4_096)
def _names_of_pods(text: str) -> tuple[str, ...]:
    """What the jobs may be called whose pods the text of an event names, shortest first."""
    pods = [hit["name"] for hit in _NAMED_POD.finditer(text)]
    names = {name for pod in pods for name in names_of_pod(pod) if len(name) >= _SHORTEST_NAME}
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def _with_first_of_role(pod: str) -> tuple[str, ...]:
    """A pod, and the first pod of its role, which the logs of all pods name as the meeting point: name-worker-0."""
    stem, _, number = pod.rpartition("-")
    return (pod, f"{stem}-0") if stem and number.isdigit() else (pod,)


def nodes_of_pods(events: Iterable[NodeEvent], is_own: Callable[[Iterable[str]], bool]) -> frozenset[str]:
    """Short names of the nodes that ran pods of a job, by the events of these pods there.

    Args:
        events: the events.
        is_own: whether one of some pods is of the job.
    """
    found: set[str] = set()
    for event in events:
        node = short_name(event.node) if event.node else None
        if node is None or node in found or "pod" not in event.text or not is_own(read_objects(event.text).pods):
            continue
        if _NOT_PLACED.search(event.text) is None:
            found.add(node)
    return frozenset(found)


def pods_that_began(events: Sequence[NodeEvent]) -> frozenset[str]:
    """The pods of which an event says that one of their containers started."""
    texts = (one.text for one in events if "Started" in one.text and "pod" in one.text)
    return frozenset(found["pod"].rstrip(".") for text in texts if (found := _BEGAN.search(text)) is not None)


def _names_in(text: str) -> list[str]:
    low = text.lower()
    found = [hit[hit.lastindex or 0] for hit in _JOB_NAME.finditer(low)]
    if any(part in low for part in _OBJECT_PARTS):
        found += [hit[1] for hit in _OBJECT.finditer(low)]
    return found


def _started_with(job: JobFacts, events: Sequence[NodeEvent]) -> set[str]:
    """The names of pods that started on the nodes of a job when it started, without roles and numbers."""
    names: set[str] = set()
    if job.started_at is None:
        return names
    for event in events:
        if event.node not in job.nodes or event.at is None or "pod/" not in event.text:
            continue
        if _is_at_start(event.at, job.started_at) and (hit := _STARTED.search(event.text)) is not None:
            *_, shortest = names_of_pod(hit["pod"])
            names.add(shortest)
    return names


def _is_at_start(at: datetime, started: datetime) -> bool:
    return -_BEFORE_START_S <= (at - started).total_seconds() <= _AFTER_START_S
