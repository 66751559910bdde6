"""Composes long runs of many ranks on a timeline: routine lines, the failure of one rank, the reactions to it."""
