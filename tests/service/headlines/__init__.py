"""Tests of headlines."""
