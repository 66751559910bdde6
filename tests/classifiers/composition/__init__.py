"""Tests of composition."""
