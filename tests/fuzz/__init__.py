"""Mutated records of every format through the real consumer; see `python -m tests.fuzz`."""
