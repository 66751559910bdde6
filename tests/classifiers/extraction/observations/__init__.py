"""Tests of what the lines of several processes show together."""
