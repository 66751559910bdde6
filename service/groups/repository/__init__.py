"""The SQL of groups."""
