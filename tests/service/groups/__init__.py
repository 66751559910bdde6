"""Tests of service.groups."""
