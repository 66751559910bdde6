"""Tests of service.hooks."""
