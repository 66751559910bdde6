"""Tests of simulations tests."""
