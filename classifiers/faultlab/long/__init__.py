"""Composes long runs of many ranks on a time line: daily life, one rank's failure in the midst, and its aftermath."""
