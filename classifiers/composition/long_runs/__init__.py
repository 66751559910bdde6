"""Composes long runs of many ranks on a time line."""
