"""Pages of people: the own account."""
