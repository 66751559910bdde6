"""Use cases that act on failures: requests, leases, outcomes, incidents, and the kill switch."""
