"""Feedback of people on verdicts, and the labels that follow from it."""
