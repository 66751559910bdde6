"""Tests of faultlab tests."""
