"""Tests of service.people."""
