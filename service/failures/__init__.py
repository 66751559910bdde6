"""Diagnosed failures: verdicts, logs, lists and search."""
