"""The SQL of feedback and applied fixes."""
