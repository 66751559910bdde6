"""From advice to action: requests, leases, outcomes, incidents, the switch."""
