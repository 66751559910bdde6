"""Simulations with known truth, run by `make simulate` and `make suspicion`."""
