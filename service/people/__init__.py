"""Accounts, ways to log in, sessions, roles, tokens and the audit log."""
