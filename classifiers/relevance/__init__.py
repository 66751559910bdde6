"""Which of the node events that came with a job may have begun its failure, and which not and why (`node_events`).

It reads no logs: `classifiers.extraction` does and hands in what they show (`event_candidates.JobEvidence`). Evidence
from other jobs and from the nodes' stored events is in `classifiers.fleet_evidence`.
"""
