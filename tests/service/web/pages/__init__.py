"""Tests of single pages."""
