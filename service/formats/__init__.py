"""Readers of external formats of finished jobs and of node events, one module per format."""
