"""From a batch of job completions to stored verdicts."""
