"""Tests of service.watch."""
