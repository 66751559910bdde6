"""Database access: engine, sessions, schema, retention."""
