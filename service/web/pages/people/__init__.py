"""Pages of people: login by name, token or identity provider, and the own account."""
