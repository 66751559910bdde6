"""The fleet's evidence: node events, maintenance, suspicion."""
