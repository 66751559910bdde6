"""Node events as evidence: what logs show of the job, which events count (`classifiers.relevance`), their order."""
