"""Observations: what several lines of a case, often of several processes, show together."""
