"""Whose event it is: of a node, a service or a pod of the job, or of others."""

import re
from functools import lru_cache
from typing import Final

from classifiers.node_names import short_name, written_out
from classifiers.relevance.event_candidates import Candidate, Fit, JobEvidence, Reason
from classifiers.relevance.event_objects import EventObjects
from classifiers.relevance.own_names import are_pods_of
from classifiers.relevance.words_in_text import is_word_in

# What the kernel of a client of NFS, Lustre, Ceph or SMB says of its server.
_CLIENT: Final = re.compile(
    r"\bnfs: server \S+ (?:not responding|OK)|-(?:osc|mdc|mgc)-[0-9a-f]|\bptlrpc_expire_one_request\b"
    r"|\bclient was evicted by\b|\blibceph: |\bceph: mds|\bCIFS: (?:VFS|fs)"
)
# Judgement: clocks of nodes and logs agree to this, in seconds.
CLOCK_SKEW_S: Final = 30.0
# Judgement: a process that meets a fault reports it within this time, in seconds.
_AT_ONCE_S: Final = 120.0
_SHORTEST_NAME: Final = 3  # of a program or machine that is looked for in addresses (judgement)
# The address of a node in its name: ip-10-0-3-17.
_ADDRESS: Final = re.compile(r"(?<![\da-z])(?:[a-z]+-)?(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})$")
# A name whose number follows the letter of a row or rack: h100-h21, gpu-a09.
_ROW: Final = re.compile(r"(?P<stem>[a-z][\w-]{0,40}-)(?P<row>[a-z]{1,2})(?P<number>\d{1,4})")
# What Ansible reports of a machine when it has worked through a play.
_RECAP: Final = re.compile(r"(?<![\w.-])(?P<host>[a-zA-Z][\w.-]{1,60}) {0,30}: ok=\d+ ")


def exclusion_by_node(one: Candidate, job: JobEvidence) -> Reason | None:
    """An event of another node counts only where it is of a shared service, or names a node or process of the job."""
    if not job.nodes:
        return None
    is_of_job = not names_other_node(one, job) and (_is_of_known_place(one, job) or _may_be_of_silent_node(one, job))
    return None if is_of_job else Reason.OTHER_NODE


def is_of_silent_node(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event that is used is of a node whose logs are missing."""
    return job.has_more_nodes and bool(job.nodes) and not _is_of_known_place(one, job)


def _is_of_known_place(one: Candidate, job: JobEvidence) -> bool:
    return (
        _is_on_job_node(one, job)
        or _is_of_used_service(one, job)
        or _is_of_start(one, job)
        or is_of_named_host(one, job)
        or began_the_wait(one, job)
    )


def began_the_wait(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event of the network came just before the processes of a job lost or awaited one another in vain.

    Switches report under names of their own, and seldom say which nodes are behind a port.
    """
    time = one.event.time
    if time is None or job.own_entries or "port" not in one.traits.objects:
        return False
    if not job.has_more_nodes and is_named_like_nodes(one, job):
        return False  # a port of another node
    if job.stalled is not None:
        return -CLOCK_SKEW_S <= job.stalled - time <= _AT_ONCE_S
    return job.waits and not job.timed_out and is_at_once(one, job)


def is_named_like_nodes(one: Candidate, job: JobEvidence) -> bool:
    """Whether who reports an event is named like the job's nodes."""
    return bool(_hosts_like(job.nodes, short_name(one.event.node or "")))


def is_of_named_host(one: Candidate, job: JobEvidence) -> bool:
    """Whether the logs name an address that begins with who reports an event, or with the machine's name."""
    stem = short_name(one.event.node or "").rstrip("0123456789").rstrip("-")
    names = {name.lower() for name in (stem, one.event.source or "") if len(name) >= _SHORTEST_NAME}
    return any(job.mentions(f"//{name}") for name in names)


def is_at_once(one: Candidate, job: JobEvidence) -> bool:
    """Whether the first line of failure comes at once after an event.

    Where that line has no time: whether the run showed no more progress after the event.
    """
    time, failed = one.event.time, job.failed_or_ended
    if time is None or failed is None or failed - time < -CLOCK_SKEW_S:
        return False
    if failed - time <= _AT_ONCE_S:
        return True
    last = job.latest_progress() or job.last_progress
    return job.failed is None and last is not None and -CLOCK_SKEW_S <= time - last <= _AT_ONCE_S


def names_other_node(one: Candidate, job: JobEvidence) -> bool:
    """Whether the text names nodes, and none of them is one of the job's."""
    named = set(_hosts_like(job.nodes, written_out(one.event.text)))
    if " ok=" in one.event.text and (recap := _RECAP.search(one.event.text)) is not None:
        named.add(short_name(recap["host"]))
    if "node" in one.traits.objects and _are_hosts(one.objects.nodes):
        named |= one.objects.nodes
    return bool(named) and named.isdisjoint(job.nodes) and not any(map(job.mentions, named))


def names_node_of(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is on a node of the job, or its text names one."""
    text = written_out(one.event.text)
    return not _places_of(one).isdisjoint(job.nodes) or _names_own_node(text, job)


def _names_own_node(text: str, job: JobEvidence) -> bool:
    return any(is_word_in(name, text) for name in (*job.nodes, *job.nodes_as_written))


def _places_of(one: Candidate) -> frozenset[str]:
    """Short names of the nodes of an event, which may be a list in short form; empty where it has none."""
    return frozenset(map(short_name, written_out(one.event.node).split(","))) if one.event.node else frozenset()


def _is_on_job_node(one: Candidate, job: JobEvidence) -> bool:
    node = one.event.node
    if node is None or not (_places_of(one) | one.objects.nodes).isdisjoint(job.nodes):
        return True
    if short_name(node) in job.pod_nodes() or _is_named_by_address(node, job):
        return True
    text = written_out(one.event.text)
    named = _names_own_node(text, job) or any(map(job.mentions, {short_name(node), node[: len(short_name(node))]}))
    named = named or is_own_pod(one.objects, job)
    return named or any(map(job.knows_process, one.objects.pids))


def _is_named_by_address(node: str, job: JobEvidence) -> bool:
    """Whether the logs name a node by its address, which some platforms write into the names of nodes."""
    found = _ADDRESS.search(short_name(node))
    return found is not None and job.mentions(".".join(found.groups()))


def _is_of_used_service(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is of a service or of file servers that the job uses: it is reported where they run."""
    objects = one.traits.objects
    if "filesystem" in objects and "service" not in objects:
        return (
            not _is_client(one, job)
            and one.fits
            and (not one.objects.filesystems or any(map(job.mentions, one.objects.filesystems)))
        )
    return "service" in objects and (one.fits or not job.own_entries)


def _is_client(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event is of another node that uses file servers: it is named like the job's, or its kernel reports."""
    return is_named_like_nodes(one, job) or _CLIENT.search(one.event.text) is not None


def _may_be_of_silent_node(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event that the logs fit is of a node whose logs are missing: the job had more nodes than are known."""
    if not job.has_more_nodes or one.fit < Fit.SLOWER or "changes" in one.traits.effects:
        return False
    return is_named_like_nodes(one, job)


def _is_of_start(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event kept a pod from its start and the job, which waited for its pods, never began.

    A pod that has not started has no log: the node that was chosen for it is then in no log of the job.
    """
    if not any(rule.before_logs for rule in one.rules):
        return False
    if job.last_progress is not None and not is_of_absent_pod(one, job):
        return False
    return one.fit is not Fit.NONE or not job.own_entries


def is_of_absent_pod(one: Candidate, job: JobEvidence) -> bool:
    """Whether an event kept one of the job's pods from its start, and the others waited for a process in vain.

    What these report as progress, such as the preparation of their data, then needs no other process.
    """
    if not any(rule.before_logs for rule in one.rules) or not job.waited_to_begin or not is_own_pod(one.objects, job):
        return False
    pods = {pod.rsplit("/", 1)[-1] for pod in one.objects.pods}
    node = one.event.node
    has_log = any(map(job.mentions, pods)) if node is None else short_name(node) in job.nodes_with_logs
    return not has_log and pods.isdisjoint(job.pods_that_began())


def _hosts_like(names: frozenset[str], text: str) -> frozenset[str]:
    """The words of a text that are written like the nodes of the job: the same letters, then a number.

    Of names such as h100-h21, whose last letters stand for a row or a rack, these may be others: h100-m60.
    """
    found: set[str] = set()
    for stem, pattern in _host_shapes(names):
        if stem in text:
            found.update(pattern.findall(text))
    for prefix in _host_prefixes(names):
        at = text.find(prefix)
        while at >= 0:
            end = at + len(prefix)
            while end < len(text) and text[end].isdigit():
                end += 1
            if end > at + len(prefix) and not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
                found.add(text[at:end])
            at = text.find(prefix, end)
    return frozenset(found)


@lru_cache(maxsize=256)
def _host_prefixes(names: frozenset[str]) -> frozenset[str]:
    """The letters before the numbers of names."""
    return frozenset(name.rstrip("0123456789") for name in names if name[-1:].isdigit()) - {""}


@lru_cache(maxsize=256)
def _host_shapes(names: frozenset[str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """What names begin with before the letters of a row or rack, and an expression for other such names."""
    shapes = {
        (hit["stem"], len(hit["row"]), len(hit["number"]))
        for name in names
        if (hit := _ROW.fullmatch(name)) is not None
    }
    return tuple(
        (stem, re.compile(rf"(?<![\w.-]){re.escape(stem)}[a-z]{{{letters}}}\d{{{digits}}}(?![\w-])"))
        for stem, letters, digits in sorted(shapes)
    )


def _are_hosts(names: frozenset[str]) -> bool:
    """Whether words after "node" look like host names: they have a digit."""
    return bool(names) and all(any(char.isdigit() for char in name) for name in names)


def is_own_pod(objects: EventObjects, job: JobEvidence) -> bool:
    """Whether a pod that an event names is one of the job."""
    return are_pods_of(objects.pods, job.job_id, job.mentions, job.job_names)
