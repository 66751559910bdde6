"""Composes failed jobs that cannot be induced here: texts of the real formats, filled with made-up values."""
