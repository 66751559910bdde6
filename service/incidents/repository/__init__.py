"""The SQL of incidents."""
