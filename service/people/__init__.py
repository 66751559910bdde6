"""Accounts, sessions, roles, tokens and the audit log."""
