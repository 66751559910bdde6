"""The SQL of node events, exposure and suspicion."""
