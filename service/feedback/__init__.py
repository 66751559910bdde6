"""Feedback of people on verdicts, labels and applied fixes."""
