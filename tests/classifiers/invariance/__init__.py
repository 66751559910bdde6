"""Verdicts do not change with the outer form in which a failure arrives."""
