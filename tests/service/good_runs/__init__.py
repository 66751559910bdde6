"""Tests of good runs."""
