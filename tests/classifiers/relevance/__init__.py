"""Tests of relevance."""
