"""Tests of feedback."""
