"""Commands that administer an installation: access, database, policy, records."""
