"""Finished job attempts."""
