"""Recommendation: ranked mitigations and one decision from a verdict and its history. Pure."""
