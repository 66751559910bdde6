"""Stored resubmission requests, leases, outcomes and the advice they are based on."""
