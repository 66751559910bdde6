"""Tests of nodes."""
