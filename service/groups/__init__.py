"""Failures of one kind: groups, their states, feedback and labels."""
