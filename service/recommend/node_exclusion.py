"""Which of a job's nodes to leave out: the one that the evidence is bound to, and those that are suspected anyway."""

import math
from collections.abc import Mapping

from classifiers.contracts import JobFacts, Verdict
from service.recommend.facts import Suspicion
from service.recommend.policy_settings import SuspicionSettings

# Faults of the platform's own software or services are held until repaired, unless one node alone shows them.
_WHOLE_PLATFORM = frozenset({"SYS.1", "SYS.6"})


def short(node: str) -> str:
    """The host's name without its domain."""
    return node.partition(".")[0]


def told(verdict: Verdict, job: JobFacts) -> str | None:
    """The job's own node that the evidence names, by the scheduler's name for it; None where several or none are.

    A name that only a log knows is not used: it can't be left out.
    """
    names = {verdict.suspect.node} if verdict.suspect is not None and verdict.suspect.node is not None else set()
    if not names:
        names = {line.node for line in verdict.evidence if line.role == "initiating" and line.node is not None}
    if len(names) != 1:
        return None
    wanted = short(names.pop() or "")
    return next((node for node in job.nodes if short(node) == wanted), None)


def suspected(job: JobFacts, suspicion: Mapping[str, Suspicion], settings: SuspicionSettings) -> tuple[str, ...]:
    """The job's nodes that fail far more often than their exposure explains, worst first, not more than allowed."""
    if not suspicion:
        return ()
    known = [(node, suspicion[node]) for node in job.nodes if node in suspicion]
    bad = [(-one.low, node) for node, one in known if one.rate_ratio >= settings.rate_ratio and one.low >= settings.low]
    most = min(settings.most_nodes, math.ceil(settings.most_share * len(job.nodes)))
    return tuple(node for _, node in sorted(bad)[:most])


def nodes_to_exclude(
    verdict: Verdict, job: JobFacts, suspicion: Mapping[str, Suspicion], settings: SuspicionSettings
) -> tuple[str, ...]:
    """The nodes that a resubmit leaves out, the one that the evidence is bound to first.

    Where trying elsewhere helps, that is the node told, or the only one the job had, and the suspected ones. A fault of
    the whole platform counts as one node's only if the job had several and one alone shows it, or one is suspected.
    Where trying again helps, only suspected nodes are left out.
    """
    if verdict.side == "user" or not job.nodes:
        return ()
    doubted = suspected(job, suspicion, settings)
    if verdict.retry_outlook == "helps":
        return doubted
    bound: str | None = None
    if verdict.retry_outlook == "helps_elsewhere":
        bound = job.nodes[0] if len(job.nodes) == 1 else told(verdict, job)
    elif verdict.cause in _WHOLE_PLATFORM and len(job.nodes) > 1:
        bound = told(verdict, job)
    elif verdict.cause not in _WHOLE_PLATFORM:
        return ()
    return doubted if bound is None else (bound, *(node for node in doubted if node != bound))
