"""Explains why a job failed from its logs alone, without an event: `faultline explain`."""
