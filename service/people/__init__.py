"""Who may do what: accounts, sessions, roles, the audit log."""
