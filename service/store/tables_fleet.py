"""Tables. The fleet: node events, maintenance and suspicion."""
