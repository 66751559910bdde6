"""The SQL of accounts, tokens and the audit log."""
