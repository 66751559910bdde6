"""Finds secrets in texts: the search, and the formats that it knows."""
