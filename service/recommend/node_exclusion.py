"""The nodes that a resubmit excludes: the node that the evidence points to, and nodes with a high failure rate."""

import math
from collections.abc import Mapping

from classifiers.contracts import JobFacts, Verdict
from classifiers.node_names import short_name, written_out
from classifiers.relevance.words_in_text import is_whole_word_in
from classifiers.suspected_place import suspects_nodes
from service.recommend.facts import Suspicion
from service.recommend.policy_settings import SuspicionSettings

# Faults of the platform's software or services are held until repaired, unless only one node shows them.
_WHOLE_PLATFORM = frozenset({"SYS.1", "SYS.6"})


def node_of_evidence(verdict: Verdict, job: JobFacts) -> str | None:
    """The job's node that the evidence names, under the scheduler's name; None if it names several or none.

    A node name that occurs only in a log is not used: the scheduler could not exclude it.
    """
    names = {verdict.suspect.node} if verdict.suspect is not None and verdict.suspect.node is not None else set()
    if not names:
        names = {line.node for line in verdict.evidence if line.role == "initiating" and line.node is not None}
    if len(names) != 1:
        return None
    wanted = short_name(names.pop() or "")
    return next((node for node in job.nodes if short_name(node) == wanted), None)


def only_node_shown(verdict: Verdict, job: JobFacts) -> str | None:
    """The job's node that alone shows a fault of the platform, None if nothing says that it is only this one.

    A rank's own error does not: the other ranks end with the first one, before they meet a fault that all nodes share.
    So an event of the node, or one that names it, has to be among the beginnings of the failure, and none of another
    node of the job.
    """
    node = node_of_evidence(verdict, job)
    if node is None:
        return None
    name = short_name(node)
    begun = [line for line in verdict.evidence if line.role == "initiating" and line.note is None]
    others = {short_name(one) for one in job.nodes} - {name}
    if any(line.node is not None and short_name(line.node) in others for line in begun if line.stream != "scheduler"):
        return None
    events = [line for line in begun if line.stream == "node" and line.node is not None]
    if any(short_name(line.node or "") == name for line in events):
        return node
    texts = [written_out(line.text).lower() for line in events]
    named = {one for one in (name, *others) if any(is_whole_word_in(one, text) for text in texts)}
    return node if named == {name} else None


def _began_on_another_node(verdict: Verdict, job: JobFacts) -> bool:
    """Whether the beginning is an event of a node that is none of the job's, and no node of the job is suspected."""
    first = next((line for line in verdict.evidence if line.role == "initiating"), None)
    if first is None or first.stream != "node" or first.node is None:
        return False
    if verdict.suspect is not None and verdict.suspect.node is not None:
        return False
    return short_name(first.node) not in map(short_name, job.nodes)


def suspected(job: JobFacts, suspicion: Mapping[str, Suspicion], settings: SuspicionSettings) -> tuple[str, ...]:
    """The job's nodes that fail far more often than their exposure explains, worst first, limited by the policy."""
    if not suspicion:
        return ()
    known = [(node, suspicion[node]) for node in job.nodes if node in suspicion]
    bad = [(-one.low, node) for node, one in known if one.rate_ratio >= settings.rate_ratio and one.low >= settings.low]
    most = min(settings.most_nodes, math.ceil(settings.most_share * len(job.nodes)))
    return tuple(node for _, node in sorted(bad)[:most])


def nodes_to_exclude(
    verdict: Verdict, job: JobFacts, suspicion: Mapping[str, Suspicion], settings: SuspicionSettings
) -> tuple[str, ...]:
    """The nodes that a resubmit excludes, the one that the evidence points to first.

    If running elsewhere helps, these are the node of the evidence (or the job's only node, unless the failure began
    with an event of a node that the job does not name) and the suspected nodes. A platform fault is attributed to one
    node only if the job had several and one alone shows it (`only_node_shown`), or one is suspected.
    If retrying helps, only suspected nodes are excluded. A verdict that suspects no node excludes none.
    """
    if not job.nodes or not suspects_nodes(verdict.side, abstained=verdict.abstained):
        return ()
    suspects = suspected(job, suspicion, settings)
    if verdict.retry_outlook == "helps":
        return suspects
    faulty: str | None = None
    if verdict.retry_outlook == "helps_elsewhere":
        is_only = len(job.nodes) == 1 and not _began_on_another_node(verdict, job)
        faulty = job.nodes[0] if is_only else node_of_evidence(verdict, job)
    elif verdict.cause in _WHOLE_PLATFORM and len(job.nodes) > 1:
        faulty = only_node_shown(verdict, job)
    elif verdict.cause not in _WHOLE_PLATFORM:
        return ()
    return suspects if faulty is None else (faulty, *(node for node in suspects if node != faulty))
