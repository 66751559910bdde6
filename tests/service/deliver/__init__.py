"""Tests of service.deliver."""
