"""The SQL of job attempts."""
