"""Tests of the second reader."""
