"""The SQL of resubmission requests, leases and outcomes."""
