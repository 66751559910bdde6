"""One suite for each protocol, run on every implementation."""
