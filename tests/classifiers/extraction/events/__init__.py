"""Tests of the reading of node events."""
