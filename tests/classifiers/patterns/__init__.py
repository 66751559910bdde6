"""Tests of the search in text."""
