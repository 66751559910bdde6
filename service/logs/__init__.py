"""Fetching the tail of a log by URI, within an allow-list."""
