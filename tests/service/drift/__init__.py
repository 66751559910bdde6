"""Tests of drift monitoring."""
