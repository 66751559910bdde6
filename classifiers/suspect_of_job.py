"""The suspect of a verdict agrees with the job: a node that the job did not use is not named."""

from dataclasses import replace

from classifiers.contracts import JobFacts, Suspect
from classifiers.taxonomy import PlatformSymptom


def suspect_of_job(suspect: Suspect | None, job: JobFacts, platform_symptom: PlatformSymptom) -> Suspect | None:
    """Return the suspect under the names of the job.

    A job whose submission was refused ran on no node. A log may name a node under another name than the scheduler's,
    or the node of an earlier run: such a name is left out, or replaced by the job's only node.
    """
    if suspect is None or platform_symptom == "submission_failure":
        return None
    if suspect.node is None or not job.nodes:
        return suspect
    wanted = suspect.node.partition(".")[0]
    if any(node.partition(".")[0] == wanted for node in job.nodes):
        return suspect
    found = replace(suspect, node=job.nodes[0] if len(job.nodes) == 1 else None)
    return None if found == Suspect() else found
