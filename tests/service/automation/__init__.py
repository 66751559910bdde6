"""Tests of service.automation."""
