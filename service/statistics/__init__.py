"""Counts and rates, and the hourly roll-ups they read."""
