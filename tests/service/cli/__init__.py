"""Tests of service.cli."""
