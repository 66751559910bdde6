"""Reads the tails of logs by URI, limited to an allow-list."""
