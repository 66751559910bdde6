"""API of people: accounts with their sessions, and the audit log."""
