"""Which places a verdict suspects: pages, explanations and messages name a node or GPU only by this rule."""

from dataclasses import replace

from classifiers.contracts import JobFacts, Suspect
from classifiers.node_names import short_name
from classifiers.taxonomy import PlatformSymptom


def suspects_nodes(side: str, *, abstained: bool) -> bool:
    """Whether a verdict suspects a node or GPU at all: not if it is undecided or on the user's side."""
    return not abstained and side != "user"


def suspected_node(node: str | None, side: str, *, abstained: bool) -> str | None:
    """The node, if the verdict suspects nodes."""
    return node if suspects_nodes(side, abstained=abstained) else None


def suspected_place(suspect: Suspect | None, side: str, *, abstained: bool) -> Suspect:
    """Where the failure most likely began: only the rank, unless the verdict suspects nodes."""
    found = suspect or Suspect()
    return found if suspects_nodes(side, abstained=abstained) else replace(found, node=None, gpu=None)


def suspect_of_job(suspect: Suspect | None, job: JobFacts, platform_symptom: PlatformSymptom) -> Suspect | None:
    """Return the suspect under the names of the job.

    A job whose submission was refused ran on no node. A log may name a node under another name than the scheduler's,
    or the node of an earlier run: such a name is left out, or replaced by the job's only node.
    """
    if suspect is None or platform_symptom == "submission_failure":
        return None
    if suspect.node is None or not job.nodes:
        return suspect
    wanted = short_name(suspect.node)
    if any(short_name(node) == wanted for node in job.nodes):
        return suspect
    found = replace(suspect, node=job.nodes[0] if len(job.nodes) == 1 else None)
    return None if found == Suspect() else found
