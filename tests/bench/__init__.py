"""Measures speed and memory (`make bench`)."""
