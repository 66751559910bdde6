"""Evidence on a failure from outside its job: stored events of its nodes, recent changes and failures of other jobs.

It is added after the classifier has read the job's own logs and events: `verdict_update` weighs it by
evidence_weights.toml, `recent_changes` adds what is shown without weight. Which of the events that came with a job
count is decided in `classifiers.relevance`.
"""
