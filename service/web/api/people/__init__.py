"""API of people: the own account, and sessions of accounts."""
