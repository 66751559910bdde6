"""Tables. People, sessions and the audit log."""
