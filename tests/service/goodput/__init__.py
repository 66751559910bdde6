"""Tests of goodput and reliability figures."""
