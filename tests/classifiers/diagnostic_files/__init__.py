"""Tests of diagnostic files."""
