"""Stored resubmission requests, leases, outcomes, lineages, and the advice they are based on."""
