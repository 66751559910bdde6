"""Composes long runs of many ranks on a time line: routine lines, the failure of one rank, the reactions to it."""
