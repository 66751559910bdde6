"""Checks of every page in a browser."""
