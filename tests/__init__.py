"""Tests, benchmarks, simulations, and the labs that they run in."""
