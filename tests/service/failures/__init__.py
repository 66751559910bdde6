"""Tests of failures."""
