"""Tests of service.web."""
