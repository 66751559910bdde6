"""Log reading under test."""
