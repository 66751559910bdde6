"""Vocabulary of resubmissions and incidents that every layer shares: plans, outcomes, states."""

from typing import Literal

Plan = Literal["elsewhere", "again"]
# The result of a resubmitted job, compared with the original failure.
Outcome = Literal["succeeded", "got_past", "failed_same", "failed_otherwise", "unknown"]
IncidentState = Literal["holding", "probing", "releasing", "closed"]

# "unknown" (cancelled, preempted, no end reported) is in neither group.
HELPED: frozenset[Outcome] = frozenset({"succeeded", "got_past"})
FAILED: frozenset[Outcome] = frozenset({"failed_same", "failed_otherwise"})

# Labels of jobs, on Kubernetes also annotations, on Slurm words in the comment.
OPT_IN_LABEL = "faultline/resubmit"  # the owner's wish
REQUEST_LABEL = "faultline/request"
LINEAGE_LABEL = "faultline/lineage"
RESUBMIT_OF_LABEL = "faultline/resubmit-of"
