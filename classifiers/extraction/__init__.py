"""From raw logs to ordered evidence: scanning, attribution to ranks, roles, suspects."""
